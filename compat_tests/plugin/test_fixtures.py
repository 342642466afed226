from __future__ import annotations

from compat_tests.plugin.conftest import WriteTests


def test_a_plain_test_gets_a_running_broker(write_tests: WriteTests) -> None:
    write_tests("""
        import socket

        def test_it(amqp_broker):
            with socket.create_connection((amqp_broker.host, amqp_broker.port)) as client:
                client.sendall(b"AMQP\\0\\0\\x09\\x01")
                assert client.recv(1) == b"\\x01"
    """).run(passed=1)


def test_pika_fixtures_share_one_connection_to_the_broker_of_the_test(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(amqp_broker, amqp_url, pika_connection, pika_channel):
            assert amqp_url == amqp_broker.url
            assert pika_channel.connection is pika_connection
            pika_channel.queue_declare("orders")
            pika_channel.basic_publish("", "orders", b"one")
            amqp_broker.queue("orders").wait_for(ready=1)
            assert len(amqp_broker.connections) == 1
    """).run(passed=1)


def test_each_test_has_a_fresh_broker(write_tests: WriteTests) -> None:
    write_tests("""
        seen = []

        @pytest.mark.parametrize("turn", range(2))
        def test_it(amqp_broker, pika_channel, turn):
            seen.append(amqp_broker)
            assert len(set(map(id, seen))) == turn + 1
            with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="404"):
                pika_channel.queue_declare("orders", passive=True)
            pika_channel.connection.channel().queue_declare("orders")
    """).run(passed=2)


def test_the_broker_is_stopped_after_its_test(write_tests: WriteTests) -> None:
    write_tests("""
        import socket

        ports = []

        def test_first(amqp_broker):
            ports.append(amqp_broker.port)

        def test_second():
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", ports[0])).close()
    """).run(passed=2)


def test_the_factory_makes_brokers_that_do_not_know_each_other(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(make_amqp_broker):
            first, second = make_amqp_broker(), make_amqp_broker()
            assert first.port != second.port
            for broker in (first, second):
                with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
                    connection.channel().queue_declare("orders", durable=broker is first)
    """).run(passed=1)


def test_a_test_may_break_its_connection(write_tests: WriteTests) -> None:
    write_tests("""
        def test_closes_it(pika_connection):
            pika_connection.close()

        def test_closes_the_channel(pika_channel):
            with pytest.raises(Exception, match="404"):
                pika_channel.basic_publish("no-such-exchange", "", b"")
                pika_channel.queue_declare("orders", passive=True)

        def test_stops_the_broker(amqp_broker, pika_channel):
            amqp_broker.stop()

        def test_restarts_the_broker(amqp_broker, pika_channel):
            amqp_broker.restart()
    """).run(passed=4)


def test_fixtures_of_the_user_may_build_on_ours(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.fixture
        def orders(pika_channel):
            pika_channel.queue_declare("orders")
            return pika_channel

        def test_it(orders, amqp_broker):
            assert amqp_broker.queue("orders").ready == 0
    """).run(passed=1)


def test_tls_fixtures_trust_the_broker(write_tests: WriteTests) -> None:
    write_tests("""
        pytestmark = pytest.mark.amqp(tls=True)

        def test_pika(amqp_url, pika_channel):
            assert amqp_url.startswith("amqps://")
            pika_channel.queue_declare("orders")

        @pytest.mark.asyncio
        async def test_aio_pika(aio_pika_connection):
            channel = await aio_pika_connection.channel()
            await channel.declare_queue("orders")
    """).run(passed=2)


def test_classes_of_plain_pytest_work(write_tests: WriteTests) -> None:
    write_tests("""
        class TestOrders:
            def test_it(self, pika_channel):
                pika_channel.queue_declare("orders")
    """).run(passed=1)


def test_every_fixture_has_a_description_in_the_list_of_fixtures(write_tests: WriteTests) -> None:
    result = write_tests("").run("--fixtures")
    text = result.stdout.str()
    for name in (
        "amqp_broker",
        "amqp_url",
        "make_amqp_broker",
        "pika_connection",
        "pika_channel",
        "aio_pika_connection",
    ):
        line = next(line for line in text.splitlines() if line.startswith(f"{name} --"))
        described = text.splitlines()[text.splitlines().index(line) + 1]
        assert described.startswith("    ") and "no docstring" not in described


def test_clients_log_in_where_definitions_have_the_hash_of_guests_password(write_tests: WriteTests) -> None:
    write_tests("""
        HASH = "c2FsdDRwMuw4kgNZhm0cEYx1m4NAR6BCdplxDdFbnDjbRIKq"
        USER = {"name": "guest", "tags": ["administrator"], "password_hash": HASH}

        @pytest.mark.amqp(definitions={"users": [USER]})
        def test_it(pika_channel, amqp_url):
            pika_channel.queue_declare("orders")
            assert "guest:guest@" in amqp_url
    """).run(passed=1)
