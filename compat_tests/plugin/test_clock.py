from __future__ import annotations

from compat_tests.plugin.conftest import WriteTests


def test_the_clock_fixture_makes_the_broker_virtual(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(amqp_clock, amqp_broker, pika_channel):
            assert amqp_clock is amqp_broker.clock
            assert amqp_clock.mode == "virtual"
            pika_channel.queue_declare("q", arguments={"x-message-ttl": 60_000})
            pika_channel.basic_publish("", "q", b"x")
            amqp_clock.advance(59)
            assert amqp_broker.queue("q").ready == 1
            amqp_clock.advance(1)
            assert amqp_broker.queue("q").ready == 0

        def test_the_order_of_fixtures_does_not_matter(amqp_broker, amqp_clock):
            assert amqp_broker.clock.mode == "virtual"

        def test_without_it_time_is_real(amqp_broker):
            assert amqp_broker.clock.mode == "real"
    """).run(passed=3)


def test_a_fixture_may_ask_for_the_clock(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.fixture
        def later(amqp_clock):
            return lambda: amqp_clock.advance(60)

        def test_it(amqp_broker, later):
            later()
            assert amqp_broker.clock.elapsed == 60
    """).run(passed=1)


def test_the_factory_makes_virtual_brokers_too_unless_told_otherwise(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(make_amqp_broker, amqp_clock):
            assert make_amqp_broker().clock.mode == "virtual"
            assert make_amqp_broker(clock="real").clock.mode == "real"
    """).run(passed=1)


def test_the_marker_chooses_the_mode(write_tests: WriteTests) -> None:
    write_tests("""
        import datetime

        @pytest.mark.amqp(clock="virtual")
        def test_virtual(amqp_broker):
            assert amqp_broker.clock.mode == "virtual"

        @pytest.mark.amqp(clock="wall")
        def test_wall(amqp_broker, amqp_clock):
            assert amqp_clock.mode == "wall"

        @pytest.mark.amqp(clock="real")
        def test_real(amqp_clock):
            assert amqp_clock.mode == "real"

        @pytest.mark.amqp(now=datetime.datetime(2024, 2, 29))
        def test_now(amqp_clock):
            assert amqp_clock.now().isoformat() == "2024-02-29T00:00:00+00:00"
    """).run(passed=4)


def test_asking_when_the_broker_is_made_already_is_an_error(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(amqp_broker, request):
            request.getfixturevalue("amqp_clock")
    """).run(failed=1, said=["*make amqp_clock an argument of the test*"])


def test_a_real_broker_has_no_such_clock(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(amqp_clock):
            pass
    """).run("--amqp-real-url=amqp://localhost:1/", skipped=1)


def test_the_freezer_fixture_moves_a_broker_on_the_wall_clock(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.mark.amqp(clock="wall")
        def test_it(freezer, amqp_broker, pika_channel):
            pika_channel.queue_declare("q", arguments={"x-message-ttl": 60_000})
            pika_channel.basic_publish("", "q", b"x")
            freezer.tick(59)
            assert amqp_broker.queue("q").ready == 1
            freezer.tick(1)
            assert amqp_broker.queue("q").ready == 0
    """).run(passed=1)
