"""The fixtures `amqp_proxy` and `make_amqp_proxy`, and the option --amqp-proxy-to."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.plugin.conftest import WriteTests
from compat_tests.tools.loopback import free_port
from fakeamqp import Broker


def test_clients_of_a_test_with_amqp_proxy_pass_through_it_to_amqp_broker(write_tests: WriteTests) -> None:
    port = free_port()
    write_tests(f"""
        def test_it(amqp_proxy, amqp_broker, amqp_url, amqp_env, pika_channel, amqp_faults, amqp_queue):
            assert amqp_url == amqp_proxy.url == amqp_env["AMQP_URL"] != amqp_broker.url
            assert amqp_faults is amqp_proxy.faults is not amqp_broker.faults
            amqp_faults.on("basic.publish").once().drop()
            orders = amqp_queue("orders")
            for body in (b"one", b"two"):
                pika_channel.basic_publish("", orders.name, body)
            amqp_proxy.expect_published(body=b"two", count=1)
            orders.wait_for(ready=1)
            assert orders.get().body == b"two"
            assert len(amqp_broker.connections) == len(amqp_proxy.connections) == 1

        @pytest.mark.amqp(port={port})
        def test_port_of_the_marker_is_that_of_the_broker(amqp_proxy, amqp_broker):
            assert amqp_broker.port == {port} != amqp_proxy.port

        def test_clock(amqp_proxy, amqp_clock, amqp_queue, pika_channel):
            orders = amqp_queue("orders", arguments={{"x-message-ttl": 60_000}})
            pika_channel.confirm_delivery()
            pika_channel.basic_publish("", orders.name, b"two apples")
            amqp_clock.advance(60)
            orders.wait_for(ready=0)
    """).run(passed=3)


def test_report_of_a_failed_test_names_its_broker_and_its_proxy(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(amqp_proxy, pika_channel):
            amqp_proxy.faults.on("queue.declare").drop()
            assert pika_channel.is_closed
    """).run(
        failed=1,
        said=[
            "*- AMQP faults that never happened -*",
            "the proxy on 127.0.0.1:*: a fault was installed and never happened*",
            "*- AMQP timeline of 127.0.0.1:*",
            "*- AMQP timeline of the proxy on 127.0.0.1:*",
        ],
    )


@pytest.fixture(params=["option", "ini"])
def to_broker(request: pytest.FixtureRequest, amqp_broker: Broker) -> list[str]:
    """Command line arguments that let proxies lead to the outer broker, in both ways to do so."""
    if request.param == "option":
        return [f"--amqp-proxy-to={amqp_broker.url}"]
    return ["-o", f"amqp_proxy_to={amqp_broker.url}"]


def test_proxy_to_names_the_broker_of_tests_with_amqp_proxy_only(
    write_tests: WriteTests, amqp_broker: Broker, to_broker: list[str]
) -> None:
    write_tests("""
        from fakeamqp import Broker

        def test_proxied(amqp_proxy, amqp_broker, pika_channel):
            assert amqp_broker is amqp_proxy
            pika_channel.queue_declare("orders")

        @pytest.fixture
        def orders(amqp_proxy, pika_channel):
            pika_channel.queue_declare("more-orders")

        def test_by_a_fixture(orders, amqp_queue):
            assert amqp_queue("more-orders", declare=False).exists

        def test_other(amqp_broker, pika_channel, amqp_clock):
            pika_channel.queue_declare("own")
            assert isinstance(amqp_broker, Broker) and amqp_broker.queue("own").exists

        def test_skipped(amqp_proxy, amqp_broker):
            amqp_broker.queue("orders")
    """).run("-rs", *to_broker, passed=3, skipped=1, said=["*: amqp_broker.queue needs fakeamqp's own*"])
    assert [queue.name for queue in amqp_broker.queues] == ["orders", "more-orders"]


def test_proxy_to_is_stronger_than_the_real_url_and_than_the_broker_of_the_session(
    write_tests: WriteTests, amqp_broker: Broker, to_broker: list[str]
) -> None:
    source = """
        def test_proxied(amqp_proxy, amqp_url, amqp_url_session, pika_channel):
            assert amqp_url == amqp_proxy.url != amqp_url_session
            pika_channel.queue_declare("orders")
    """
    with Broker() as other:
        write_tests(source).run(f"--amqp-real-url={other.url}", *to_broker, passed=1)
        assert not other.queues
    assert amqp_broker.queue("orders").exists
    write_tests(source).run("--amqp-scope=session", *to_broker, passed=1)


def test_proxy_requested_by_name_fails_with_proxy_to(write_tests: WriteTests, to_broker: list[str]) -> None:
    write_tests("""
        def test_it(request):
            request.getfixturevalue("amqp_proxy")
    """).run(*to_broker, failed=1, said=["*--amqp-proxy-to is for tests that have amqp_proxy among *"])


def test_proxy_to_without_a_broker_is_an_error_that_names_the_option(
    write_tests: WriteTests, amqp_broker: Broker, to_broker: list[str]
) -> None:
    amqp_broker.stop()
    write_tests("def test_it(amqp_proxy): pass").run(
        *to_broker, errors=1, said=["*amqp?proxy?to: amqp://****@127.0.0.1:*: no broker at *"]
    )


@pytest.mark.parametrize("given", ["-oamqp_proxy_to=localhost:5672", "--amqp-proxy-to=http://host/"])
def test_proxy_to_without_an_amqp_url_is_a_usage_error(write_tests: WriteTests, given: str) -> None:
    write_tests("").run(given, usage_error=["*amqp?proxy?to: '*' is not of the form amqp://*"])


# --- make_amqp_proxy --------------------------------------------------------------------------------


def test_make_amqp_proxy_makes_several_which_stop_with_the_test(
    write_tests: WriteTests, pytester: pytest.Pytester, amqp_broker: Broker
) -> None:
    write_tests(f"""
        PROXIES = []

        def publish(proxy):
            with pika.BlockingConnection(pika.URLParameters(proxy.url)) as connection:
                connection.channel().basic_publish("", "orders", b"two apples")

        def test_it(make_amqp_proxy, amqp_broker, amqp_url):
            assert amqp_url == amqp_broker.url
            north, south = make_amqp_proxy(), make_amqp_proxy(amqp_broker.url, trace=3, seed="x")
            other = make_amqp_proxy(to=["amqp://127.0.0.1:1/", {amqp_broker.url!r}])
            PROXIES.extend((north, south, other))
            for proxy in PROXIES:
                publish(proxy)
                proxy.expect_published(count=1)
            assert len(amqp_broker.published) == 2
            assert len(south.trace) == 3

        def test_stopped():
            assert [proxy.running for proxy in PROXIES] == [False] * 3
    """).run("--amqp-trace=traces", "--amqp-trace-formats=jsonl", passed=2)
    assert amqp_broker.expect_published(count=1)
    names = sorted(path.name for path in Path(pytester.path, "traces").iterdir())
    assert names == ["test_inner-test_it.2.jsonl", "test_inner-test_it.3.jsonl", *names[2:]]
    assert len(names) == 4


def test_make_amqp_proxy_is_in_front_of_the_real_broker_by_default(
    write_tests: WriteTests, amqp_broker: Broker
) -> None:
    write_tests("""
        def test_it(make_amqp_proxy, amqp_broker):
            proxy = make_amqp_proxy()
            assert proxy is not amqp_broker and proxy.url != amqp_broker.url
            with pika.BlockingConnection(pika.URLParameters(proxy.url)) as connection:
                connection.channel().queue_declare("orders")
            assert len(amqp_broker.trace) == 0
    """).run(f"--amqp-real-url={amqp_broker.url}", passed=1)
    assert amqp_broker.queue("orders").exists


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("make_amqp_proxy(traec=5)", "*make_amqp_proxy has no argument 'traec'; did you mean 'trace'?"),
        (
            "make_amqp_proxy(personality='spec')",
            "*make_amqp_proxy has no argument 'personality'; there are *",
        ),
        ("make_amqp_proxy('rabbit:5672')", "*'rabbit:5672' is no URL of a broker*"),
        ("make_amqp_proxy(runtime='asynco')", "*unknown runtime 'asynco'; did you mean 'asyncio'?"),
    ],
)
def test_wrong_argument_of_make_amqp_proxy_is_an_error_with_the_near_match(
    write_tests: WriteTests, call: str, said: str
) -> None:
    write_tests(f"def test_it(make_amqp_proxy): {call}").run(failed=1, said=[f"E {said}"])


def test_unused_fault_of_a_proxy_of_the_test_fails_it(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(make_amqp_proxy):
            make_amqp_proxy().faults.on("basic.publish").nack()
    """).run(failed=1, said=["the proxy on 127.0.0.1:*: a fault was installed and never happened*"])


# --- other runtimes and options -----------------------------------------------------------------------


def test_proxies_in_the_event_loop_over_tls_and_in_a_simulation(write_tests: WriteTests) -> None:
    write_tests("""
        async def round_trip(connection, proxy):
            proxy.faults.on("basic.publish").once().nack()
            channel = await connection.channel()
            queue = await channel.declare_queue("orders")
            with pytest.raises(aio_pika.exceptions.DeliveryError):
                await channel.default_exchange.publish(aio_pika.Message(b"one"), "orders")
            await channel.default_exchange.publish(aio_pika.Message(b"two"), "orders")
            message = await queue.get()
            await message.ack()
            await proxy.expect_published.aio(body=b"two", count=1)

        @pytest.mark.asyncio
        @pytest.mark.amqp(runtime="asyncio", checks=True)
        async def test_in_the_loop(amqp_proxy, aio_pika_connection, make_amqp_proxy, amqp_broker):
            await round_trip(aio_pika_connection, amqp_proxy)
            async with make_amqp_proxy() as other, await aio_pika.connect(other.url) as connection:
                await round_trip(connection, other)
            assert amqp_broker.queue("orders").exists

        @pytest.mark.asyncio
        @pytest.mark.amqp(runtime="asyncio")
        async def test_factory_alone(make_amqp_proxy):
            async with make_amqp_proxy() as proxy, await aio_pika.connect(proxy.url) as connection:
                await round_trip(connection, proxy)

        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["asyncio"])
        @pytest.mark.amqp(runtime="asyncio")
        async def test_anyio(amqp_proxy, aio_pika_connection):
            await round_trip(aio_pika_connection, amqp_proxy)

        @pytest.mark.amqp(tls=True, checks=True)
        def test_tls(amqp_proxy, amqp_broker, pika_channel):
            assert amqp_proxy.url.startswith("amqps:") and amqp_broker.url.startswith("amqps:")
            pika_channel.queue_declare("orders")
            assert amqp_broker.queue("orders").exists

        @pytest.mark.amqp(simulated=True, seeds=3)
        async def test_simulated(amqp_proxy, aio_pika_connection):
            await round_trip(aio_pika_connection, amqp_proxy)
    """).run("-W", "error", passed=5)


def test_comparison_runs_a_test_with_a_proxy_on_both_personalities(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(amqp_proxy, amqp_broker, pika_channel):
            pika_channel.queue_declare("orders", durable=False)
    """).run(
        "--amqp-compare=rabbitmq-3.13,rabbitmq-4.3",
        passed=2,
        said=["1 test ran on both, 1 with no difference"],
    )
