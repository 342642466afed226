"""The broker of the session: the fixture, the scope, the reset after each test, and what a report shows."""

from __future__ import annotations

import pytest

from compat_tests.plugin.conftest import INI, WriteTests

TWO_TESTS = """
    ports = []

    def test_first(amqp_broker, pika_channel):
        ports.append(amqp_broker.port)
        pika_channel.queue_declare("first", durable=True)

    def test_second(amqp_broker, pika_channel):
        ports.append(amqp_broker.port)
        assert amqp_broker.queues == () and len(amqp_broker.connections) == 1
        assert len(set(ports)) == {brokers}
"""


@pytest.mark.parametrize(
    "arguments", [("--amqp-scope=session",), ("-o", "amqp_scope=session")], ids=["option", "ini"]
)
def test_one_broker_serves_all_tests_and_is_reset_after_each(
    write_tests: WriteTests, arguments: tuple[str, ...]
) -> None:
    write_tests(TWO_TESTS.replace("{brokers}", "1")).run(*arguments, passed=2)
    write_tests(TWO_TESTS.replace("{brokers}", "2")).run(passed=2)


def test_the_marker_sets_the_scope_and_the_closest_wins(write_tests: WriteTests) -> None:
    write_tests("""
        pytestmark = pytest.mark.amqp(scope="session")
        ports = []

        def test_first(amqp_broker):
            ports.append(amqp_broker.port)

        def test_second(amqp_broker, amqp_broker_session):
            assert amqp_broker is amqp_broker_session
            assert ports == [amqp_broker.port]

        @pytest.mark.amqp(scope="function", users={"alice": "secret"})
        def test_apart(amqp_broker, amqp_url):
            assert amqp_broker.port not in ports and "//alice:" in amqp_url
    """).run(passed=3)


def test_other_fixtures_of_a_test_are_about_the_same_broker(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.fixture(scope="session")
        def app(amqp_url_session):
            return amqp_url_session

        def test_first(app, pika_channel, amqp_url, amqp_broker):
            assert amqp_url == app
            pika_channel.queue_declare("orders")

        def test_it(app, pika_channel, amqp_url, amqp_faults, amqp_broker_session):
            assert amqp_broker_session.queues == ()
            assert amqp_url == app
            pika_channel.queue_declare("orders")
            assert amqp_broker_session.queue("orders").ready == 0
            assert amqp_faults is amqp_broker_session.faults

        def test_next(app, amqp_broker):
            assert amqp_broker.queues == () and amqp_broker.url == app
    """).run(passed=3)


def test_unittest_class_with_session_scope_uses_the_session_broker(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.mark.amqp(scope="session")
        class Orders(unittest.TestCase):
            ports = set()

            @pytest.fixture(autouse=True)
            def take(self, amqp_broker, pika_channel):
                self.broker, self.channel = amqp_broker, pika_channel

            def test_one(self):
                self.channel.queue_declare("one")
                self.ports.add(self.broker.port)

            def test_two(self):
                self.assertEqual(self.broker.queues, ())
                self.ports.add(self.broker.port)
                self.assertEqual(len(self.ports), 1)
    """).run(passed=2)


def test_session_broker_keeps_queues_between_tests_with_reset_false(write_tests: WriteTests) -> None:
    result = write_tests("""
        @pytest.mark.amqp(scope="session", reset=False)
        class TestFlow:
            def test_declaring(self, pika_channel, amqp_clock):
                pika_channel.queue_declare("orders", durable=True)
                amqp_clock.advance(30)

            def test_publishing(self, amqp_broker, pika_channel):
                pika_channel.basic_publish("", "orders", b"apples")
                amqp_broker.queue("orders").wait_for(ready=1)
                assert False, "on purpose"
    """).run("-o", "amqp_broker_arguments=clock=virtual", passed=1, failed=1)
    timeline = result.stdout.str().split("AMQP timeline")[1]
    assert "basic.publish" in timeline
    assert "queue.declare" not in timeline, "it belongs to the test before"
    # Times count from the beginning of the test.
    assert timeline.splitlines()[1].strip().startswith("0.000 ")


def test_report_timeline_has_only_events_of_the_failed_test(write_tests: WriteTests) -> None:
    result = write_tests("""
        @pytest.fixture(scope="session")
        def worker(amqp_broker_session):
            connection = pika.BlockingConnection(pika.URLParameters(amqp_broker_session.url))
            connection.channel().queue_declare("of-the-worker")
            yield connection
            with pytest.raises(pika.exceptions.AMQPError):  # The reset has closed it.
                connection.close()

        def test_first(worker, pika_channel):
            pika_channel.queue_declare("of-the-first")

        def test_second(worker, pika_channel):
            pika_channel.queue_declare("of-the-second")
            assert False, "on purpose"
    """).run(passed=1, failed=1)
    timeline = result.stdout.str().split("AMQP timeline")[1]
    assert "of-the-second" in timeline
    assert "of-the-first" not in timeline and "of-the-worker" not in timeline


def test_failed_session_fixture_reports_its_timeline(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.fixture(scope="session")
        def worker(amqp_broker_session):
            with pika.BlockingConnection(pika.URLParameters(amqp_broker_session.url)) as connection:
                connection.channel().queue_declare("orders", passive=True)

        def test_it(worker):
            pass
    """).run(errors=1, said=["*AMQP timeline*", "*404*NOT_FOUND*"])


def test_faults_are_verified_and_do_not_reach_the_next_test(write_tests: WriteTests) -> None:
    write_tests("""
        pytestmark = pytest.mark.amqp(scope="session")

        def test_unused(amqp_faults):
            amqp_faults.on("basic.publish").once().nack()

        def test_next(amqp_broker, pika_channel):
            pika_channel.confirm_delivery()
            pika_channel.basic_publish("", "nowhere", b"")
            assert len(amqp_broker.published) == 1
    """).run(passed=1, failed=1, said=["*a fault was installed and never happened*"])


def test_a_broker_that_a_test_stopped_runs_again(write_tests: WriteTests) -> None:
    write_tests("""
        pytestmark = pytest.mark.amqp(scope="session")

        def test_stopping(amqp_broker):
            amqp_broker.stop()

        def test_next(pika_channel):
            pika_channel.queue_declare("orders")
    """).run(passed=2)


def test_definitions_of_the_ini_file_are_there_again_after_a_reset(
    write_tests: WriteTests, pytester: pytest.Pytester
) -> None:
    pytester.path.joinpath("broker.json").write_text(
        '{"queues": [{"name": "orders", "vhost": "/", "durable": true, "arguments": {}}]}'
    )
    write_tests("""
        @pytest.mark.parametrize("run", [1, 2])
        def test_it(run, amqp_broker, pika_channel, amqp_clock):
            assert amqp_broker.clock.mode == "virtual"
            assert [queue.name for queue in amqp_broker.queues] == ["orders"]
            pika_channel.queue_delete("orders")

        @pytest.mark.amqp(scope="function", clock="real")
        def test_the_marker_overrides(amqp_broker):
            assert amqp_broker.clock.mode == "real" and len(amqp_broker.queues) == 1
    """).run(
        "-o",
        "amqp_broker_arguments=definitions=broker.json\nclock = virtual",
        "--amqp-scope=session",
        passed=3,
    )


def test_a_virtual_clock_needs_a_broker_of_its_own_or_an_ini_option(write_tests: WriteTests) -> None:
    source = """
        def test_it(amqp_clock):
            amqp_clock.advance(60)
        """
    write_tests(source).run(
        "--amqp-scope=session", errors=1, said=["*has a real clock*amqp_broker_arguments*scope='function'*"]
    )


def test_recording_has_only_events_of_its_own_test(
    write_tests: WriteTests, pytester: pytest.Pytester
) -> None:
    write_tests("""
        @pytest.mark.parametrize("name", ["apples", "pears"])
        def test_it(amqp_broker_session, name):
            with pika.BlockingConnection(pika.URLParameters(amqp_broker_session.url)) as connection:
                connection.channel().queue_declare(name)
    """).run("--amqp-trace=traces", "--amqp-trace-formats=jsonl", passed=2)
    apples, pears = sorted(pytester.path.joinpath("traces").iterdir())
    assert apples.name == "test_inner-test_it-apples.jsonl"
    for here, elsewhere in ((apples, "pears"), (pears, "apples")):
        text = here.read_text()
        assert here.stem.rpartition("-")[2] in text and elsewhere not in text


def test_an_interrupted_test_is_recorded(write_tests: WriteTests, pytester: pytest.Pytester) -> None:
    result = write_tests("""
        def test_it(amqp_url_session):
            with pika.BlockingConnection(pika.URLParameters(amqp_url_session)) as connection:
                connection.channel().queue_declare("orders")
                raise KeyboardInterrupt
    """).run_apart("--amqp-trace=traces", "--amqp-trace-formats=jsonl")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "orders" in pytester.path.joinpath("traces", "test_inner-test_it.jsonl").read_text()


def test_compare_gives_each_run_its_own_broker_in_session_scope(write_tests: WriteTests) -> None:
    write_tests("""
        ports = []

        def test_own(amqp_broker):
            ports.append(amqp_broker.port)
            assert len(set(ports)) == len(ports)

        def test_session(amqp_broker_session, pika_channel):
            pika_channel.queue_declare("orders")
    """).run(
        "--amqp-scope=session",
        "--amqp-compare=rabbitmq-3.13,rabbitmq-4.3",
        "-v",
        passed=3,
        said=["*test_own PASSED on rabbitmq-3.13*", "*test_session PASSED*"],
    )


@pytest.mark.long
def test_each_xdist_worker_has_its_own_session_broker(pytester: pytest.Pytester) -> None:
    pytester.makeini(INI)
    pytester.makepyfile(
        test_inner="""
        import pytest

        @pytest.mark.parametrize("run", range(6))
        def test_it(run, amqp_broker_session, pika_channel):
            assert amqp_broker_session.queues == ()
            pika_channel.queue_declare("orders")
        """
    )
    result = pytester.runpytest_subprocess("-n2", timeout=120)
    result.assert_outcomes(passed=6)


SESSION_DEFINITIONS = """
DEFINITIONS = {{"queues": [{{"name": "orders", "vhost": "/", "durable": True}}]}}

@pytest.fixture(scope="session", autouse=True)
def topology(amqp_broker_session):
    amqp_broker_session.load_definitions(DEFINITIONS{keep})

def test_one(amqp_broker, pika_channel):
    pika_channel.queue_declare("orders", passive=True)

def test_two(amqp_broker, pika_channel):
    pika_channel.queue_declare("orders", passive=True)

def test_three(amqp_broker, pika_channel):
    pika_channel.basic_publish("", "orders", b"apples")
    amqp_broker.queue("orders").wait_for(ready=1, timeout=0.1)

def test_four(amqp_broker):
    pass

def test_five(amqp_broker, pika_channel):
    pika_channel.basic_publish("", "orders", b"apples")
    [sent] = amqp_broker.expect_published()
    assert sent.routed
"""


def test_definitions_loaded_with_keep_outlast_the_reset_after_each_test(write_tests: WriteTests) -> None:
    write_tests(SESSION_DEFINITIONS.format(keep=", keep=True")).run(passed=5)


def test_report_names_a_queue_removed_by_an_earlier_reset(write_tests: WriteTests) -> None:
    result = write_tests(SESSION_DEFINITIONS.format(keep="")).run(passed=2, failed=3)
    advice = "load_definitions(..., keep=True) loads definitions that outlast resets"
    result.stdout.fnmatch_lines(
        [
            "*NOT_FOUND - no queue 'orders' in vhost '/'*",
            "*- AMQP reset -*",
            f"queue 'orders' existed until the reset before this test; {advice}",
            "E *waited 0.1 s for queue 'orders'*",
            f"E *queue 'orders' existed until an earlier reset; {advice}",
            "*- AMQP reset -*",
            f"queue 'orders' existed until an earlier reset; {advice}",
            "*___ test_five ___*",
            "*- AMQP reset -*",
        ]
    )
