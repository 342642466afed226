"""The option --amqp-real-url. A fakeamqp broker outside the inner run plays the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.plugin.conftest import WriteTests
from fakeamqp import Broker, Proxy
from fakeamqp.proxy import IMPOSSIBLE
from fakeamqp.settings import BrokerArguments, ProxyArguments
from fakeamqp.trace import load


@pytest.fixture(params=["option", "ini"])
def name_broker(request: pytest.FixtureRequest, amqp_broker: Broker) -> list[str]:
    """Command line arguments that name the outer broker, in both ways to do so."""
    if request.param == "option":
        return [f"--amqp-real-url={amqp_broker.url}"]
    return ["-o", f"amqp_real_url={amqp_broker.url}"]


def test_clients_reach_the_named_broker_through_a_proxy(
    write_tests: WriteTests, name_broker: list[str], amqp_broker: Broker
) -> None:
    write_tests(f"""
        from fakeamqp import Proxy

        def test_url(amqp_url, amqp_broker, amqp_proxy, amqp_env):
            assert amqp_proxy is amqp_broker and isinstance(amqp_proxy, Proxy)
            assert amqp_url == amqp_broker.url == amqp_env["AMQP_URL"] != {amqp_broker.url!r}
            assert amqp_url == {amqp_broker.url!r}.replace(":{amqp_broker.port}/", f":{{amqp_proxy.port}}/")

        def test_pika(pika_channel):
            pika_channel.queue_declare("from-pika")

        @pytest.mark.asyncio
        async def test_aio_pika(aio_pika_connection, amqp_proxy):
            channel = await aio_pika_connection.channel()
            await channel.declare_queue("from-aio-pika")
            assert len(amqp_proxy.connections) == 1
    """).run(*name_broker, passed=3)
    assert amqp_broker.queue("from-pika").ready == 0
    assert amqp_broker.queue("from-aio-pika").ready == 0


def test_query_of_a_real_url_is_that_of_amqp_url(write_tests: WriteTests, amqp_broker: Broker) -> None:
    write_tests("""
        def test_it(amqp_url):
            assert pika.URLParameters(amqp_url).heartbeat == 7
    """).run(f"--amqp-real-url={amqp_broker.url}?heartbeat=7", passed=1)


# --- what works -------------------------------------------------------------------------------------


def test_faults_happen_in_front_of_a_real_broker(write_tests: WriteTests, amqp_broker: Broker) -> None:
    write_tests("""
        def test_it(amqp_faults, amqp_broker, pika_channel):
            refused = amqp_faults.on("basic.publish", routing_key="orders").once().nack()
            pika_channel.queue_declare("orders")
            pika_channel.confirm_delivery()
            with pytest.raises(pika.exceptions.NackError):
                pika_channel.basic_publish("", "orders", b"one")
            pika_channel.basic_publish("", "orders", b"two")
            assert refused.hits == 1 and amqp_broker.faults is amqp_faults
            amqp_faults.network.cut_after(bytes=1)
            with pytest.raises(pika.exceptions.AMQPError):
                pika_channel.queue_declare("orders")
    """).run(f"--amqp-real-url={amqp_broker.url}", passed=1)
    assert [message.body for message in amqp_broker.queue("orders").messages] == [b"two"]


def test_unused_fault_in_front_of_a_real_broker_fails_the_test_with_the_near_miss(
    write_tests: WriteTests, amqp_broker: Broker
) -> None:
    write_tests("""
        def test_it(amqp_faults, pika_channel):
            amqp_faults.on("basic.publish", routing_key="order").nack()
            pika_channel.basic_publish("", "orders", b"one")
    """).run(
        f"--amqp-real-url={amqp_broker.url}",
        failed=1,
        said=["a fault was installed and never happened*", "*routing_key is 'orders', not 'order'"],
    )


def test_expectations_count_what_the_clients_of_this_test_publish_to_a_real_broker(
    write_tests: WriteTests, amqp_broker: Broker
) -> None:
    amqp_broker.publish(b"earlier", routing_key="orders")
    write_tests("""
        def test_kept(amqp_broker, pika_channel):
            pika_channel.basic_publish("", "orders", b'{"apples": 2}')
            [message] = amqp_broker.expect_published(routing_key="orders", json={"apples": 2})
            assert list(amqp_broker.published) == [message]
            amqp_broker.wait_until_idle()
            amqp_broker.expect_nothing_published(routing_key="invoices")

        def test_missed(amqp_broker, pika_channel):
            pika_channel.basic_publish("", "orders", b"two apples")
            amqp_broker.expect_published(routing_key="order", timeout=0.1)
    """).run(
        f"--amqp-real-url={amqp_broker.url}",
        passed=1,
        failed=1,
        said=["*nearest*", "*two apples*routing_key*"],
    )


def test_report_of_a_failed_test_on_a_real_broker_has_the_timeline(
    write_tests: WriteTests, name_broker: list[str]
) -> None:
    result = write_tests("""
        def test_it(pika_channel):
            pika_channel.queue_declare("orders")
            assert pika_channel.is_closed
    """).run(*name_broker, failed=1, said=["*- AMQP timeline -*", "*-> 1 *queue.declare queue='orders'*"])
    assert "password" not in result.stdout.str()


def test_checks_of_the_marker_look_at_a_real_broker(write_tests: WriteTests, amqp_broker: Broker) -> None:
    write_tests("""
        @pytest.mark.amqp(checks=True)
        @pytest.mark.parametrize("settles", [True, False])
        def test_it(pika_channel, settles):
            pika_channel.queue_declare("orders")
            pika_channel.basic_publish("", "orders", b"two apples")
            method, _, _ = pika_channel.basic_get("orders")
            if settles:
                pika_channel.basic_ack(method.delivery_tag)
    """).run(
        f"--amqp-real-url={amqp_broker.url}",
        passed=1,
        failed=1,
        said=["FAILED *CheckFailed: the trace has 1 finding*"],
    )


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_recordings_of_tests_on_a_real_broker_are_written_without_the_password(
    write_tests: WriteTests, amqp_broker: Broker, pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    write_tests("""
        def test_it(pika_channel):
            pika_channel.queue_declare("orders", exclusive=True)
    """).run_apart(
        "--amqp-trace=traces",
        f"--amqp-real-url={amqp_broker.url}",
        *workers,
        passed=1,
        said=["AMQP recordings of 1 test: 3 files in traces"],
    )
    file = Path(pytester.path, "traces", "test_inner-test_it.jsonl")
    assert "queue.declare" in load(file).timeline()
    assert "guest:guest" not in file.read_text()


def test_queues_for_both_are_hit_by_no_fault_and_are_in_no_trace(
    write_tests: WriteTests, amqp_broker: Broker
) -> None:
    write_tests("""
        def test_it(amqp_queue, amqp_faults, amqp_broker):
            amqp_faults.on("basic.publish").optional().nack()
            amqp_faults.network.refuse()
            orders = amqp_queue("orders")
            orders.publish(b"two apples")
            assert orders.get().body == b"two apples"
            assert len(amqp_broker.published) == len(amqp_broker.trace) == 0
    """).run(f"--amqp-real-url={amqp_broker.url}", passed=1)


def test_arguments_of_the_marker_and_the_ini_file_configure_the_proxy(
    write_tests: WriteTests, amqp_broker: Broker
) -> None:
    write_tests("""
        @pytest.mark.amqp(tls=True, seed=7, trace=5, history=1)
        def test_marker(amqp_broker, amqp_url, pika_channel):
            assert amqp_url.startswith("amqps://")
            for _ in range(2):
                pika_channel.basic_publish("", "orders", b"two apples")
            amqp_broker.expect_published(count=(1, None))
            assert (len(amqp_broker.trace), len(amqp_broker.published)) == (5, 1)

        def test_ini(amqp_broker, pika_channel):
            pika_channel.queue_declare("orders", exclusive=True)
            assert len(amqp_broker.trace) == 3
    """).run(
        f"--amqp-real-url={amqp_broker.url}", "-o", "amqp_broker_arguments=trace=3\nclock=virtual", passed=2
    )


def test_proxy_of_a_coroutine_runs_in_its_event_loop(write_tests: WriteTests, amqp_broker: Broker) -> None:
    write_tests("""
        import threading

        async def round_trip(connection, proxy, faults):
            assert not [each for each in threading.enumerate() if "fakeamqp" in each.name]
            faults.on("basic.publish").once().nack()
            channel = await connection.channel()
            queue = await channel.declare_queue("orders")
            with pytest.raises(aio_pika.exceptions.DeliveryError):
                await channel.default_exchange.publish(aio_pika.Message(b"one"), "orders")
            await channel.default_exchange.publish(aio_pika.Message(b"two"), "orders")
            assert (await queue.get()).body == b"two"
            await proxy.expect_published.aio(routing_key="orders", count=1)

        @pytest.mark.asyncio
        async def test_pytest_asyncio(amqp_broker, amqp_faults, aio_pika_connection):
            await round_trip(aio_pika_connection, amqp_broker, amqp_faults)

        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["asyncio"])
        async def test_anyio(amqp_broker, amqp_faults, aio_pika_connection):
            await round_trip(aio_pika_connection, amqp_broker, amqp_faults)

        def test_not_a_coroutine(pika_channel):
            pika_channel.queue_delete("orders")
    """).run_apart(f"--amqp-real-url={amqp_broker.url}", "--amqp-runtime=asyncio", passed=3)


@pytest.mark.parametrize(
    "options", [["--amqp-scope=session"], ["-o", "amqp_env=BROKER_URL"]], ids=["scope", "environment"]
)
def test_proxy_of_the_session_is_reset_after_each_test(
    write_tests: WriteTests, pytester: pytest.Pytester, amqp_broker: Broker, options: list[str]
) -> None:
    pytester.makeconftest("import os\nURL = os.environ.get('BROKER_URL')")
    write_tests(f"""
        from conftest import URL

        URLS = set()

        @pytest.mark.parametrize("turn", range(3))
        def test_it(amqp_url, amqp_broker, amqp_broker_session, amqp_url_session, pika_channel, turn):
            URLS.add(amqp_url)
            assert URLS == {{amqp_url_session}} == {{amqp_broker.url}}
            assert amqp_broker is amqp_broker_session and URL in (amqp_url, None)
            assert amqp_url != {amqp_broker.url!r}
            assert len(amqp_broker.published) == len(amqp_broker.faults.rules) == 0
            pika_channel.basic_publish("", "orders", b"two apples")
            amqp_broker.expect_published(count=1)
            amqp_broker.faults.on("queue.declare").optional().drop()
            assert turn != 2
    """).run(f"--amqp-real-url={amqp_broker.url}", *options, passed=2, failed=1, said=["*- AMQP timeline -*"])


# --- what a real broker cannot do -------------------------------------------------------------------


def test_test_that_needs_fakeamqp_features_is_skipped_with_the_reason(
    write_tests: WriteTests, name_broker: list[str]
) -> None:
    write_tests("""
        def test_factory(make_amqp_broker):
            raise AssertionError("not to be run")

        def test_clock(amqp_clock):
            raise AssertionError("not to be run")

        async def test_simulation(amqp_simulation):
            raise AssertionError("not to be run")

        @pytest.mark.amqp(users={"alice": "secret"}, tls=True)
        def test_marker(pika_channel):
            raise AssertionError("not to be run")

        def test_queue(amqp_broker, pika_channel):
            pika_channel.queue_declare("orders")
            amqp_broker.queue("orders")
            raise AssertionError("not to be run")

        @pytest.mark.asyncio
        async def test_restart(amqp_broker):
            amqp_broker.restart()
            raise AssertionError("not to be run")

        def test_wait(amqp_broker):
            amqp_broker.wait_for(lambda: amqp_broker.queue("orders").ready)
            raise AssertionError("not to be run")

        class TestOrders(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def take_broker(self, amqp_broker):
                self.broker = amqp_broker

            def test_it(self):
                self.broker.clock.advance(60)
                raise AssertionError("not to be run")

        def test_crash(amqp_faults):
            amqp_faults.on("basic.publish").crash()
            raise AssertionError("not to be run")

        def test_chaos(amqp_broker):
            amqp_broker.faults.chaos(1, {"restart": 1})
            raise AssertionError("not to be run")
    """).run(
        "-rs",
        *name_broker,
        skipped=10,
        said=[
            "*: make_amqp_broker needs fakeamqp's own broker, and this test runs on a real one: it makes*",
            "*: amqp_clock needs fakeamqp's own broker, * the clock of a real broker cannot be moved",
            "*: amqp_simulation needs fakeamqp's own broker, *",
            "*: @pytest.mark.amqp(users=...) needs fakeamqp's own broker, *",
            "*: amqp_broker.queue needs fakeamqp's own broker, *a proxy does not see*; amqp_queue asks *",
            "*: amqp_broker.restart needs fakeamqp's own broker, *cannot restart the broker behind it",
            "*: the fault 'crash' needs fakeamqp's own broker, *a proxy cannot crash the broker behind it*",
            "*: the fault 'restart' needs fakeamqp's own broker, *",
        ],
    )


def test_test_whose_own_code_needs_fakeamqp_does_nothing_on_a_real_broker(
    write_tests: WriteTests, amqp_broker: Broker
) -> None:
    write_tests("""
        def test_function(amqp_broker, pika_channel):
            pika_channel.queue_declare("orders")
            assert amqp_broker.queue("orders").ready == 0

        class TestOrders:
            def test_method(self, amqp_broker, pika_channel):
                pika_channel.queue_declare("orders")
                amqp_broker.wait_for(lambda: amqp_broker.queue("orders").ready == 0)

        @pytest.mark.asyncio
        async def test_coroutine(amqp_broker, aio_pika_connection):
            await (await aio_pika_connection.channel()).declare_queue("orders")
            amqp_broker.clock.advance(60)

        def ready(broker, pika_channel):
            pika_channel.queue_declare("by a function")
            return broker.queue("orders").ready

        def test_that_calls_a_function(amqp_broker, pika_channel):
            assert ready(amqp_broker, pika_channel) == 0
    """).run(f"--amqp-real-url={amqp_broker.url}", skipped=4)
    assert [queue.name for queue in amqp_broker.queues] == ["by a function"]


def test_each_public_name_of_broker_is_one_of_a_proxy_or_has_a_reason() -> None:
    names = [{name for name in dir(kind) if not name.startswith("_")} for kind in (Broker, Proxy)]
    assert IMPOSSIBLE.keys() & names[0] == names[0] - names[1]


def test_each_argument_that_marker_and_proxy_share_is_one_of_broker() -> None:
    assert ProxyArguments.__annotations__.keys() - BrokerArguments.__annotations__.keys() == {
        "to_tls",
        "record",
    }


def test_misspelled_member_is_an_error_and_not_a_skip(write_tests: WriteTests, amqp_broker: Broker) -> None:
    write_tests("def test_it(amqp_broker): amqp_broker.publishd").run(
        f"--amqp-real-url={amqp_broker.url}", failed=1, said=["E*AttributeError: *'publishd'*"]
    )


@pytest.mark.parametrize(
    ("option", "named"),
    [("--amqp-personality=spec", "--amqp-personality"), ("--amqp-races=true", "--amqp-races")],
)
def test_option_without_effect_on_a_real_broker_is_a_warning(
    write_tests: WriteTests, amqp_broker: Broker, option: str, named: str
) -> None:
    write_tests("def test_it(amqp_url): pass").run(
        option,
        f"--amqp-real-url={amqp_broker.url}",
        passed=1,
        warnings=1,
        said=[f"*{named}: no effect on the real broker of --amqp-real-url"],
    )


# --- errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fixture", ["amqp_url", "pika_connection", "amqp_queue", "amqp_url_session"])
def test_real_url_without_a_broker_is_an_error_of_each_test(
    write_tests: WriteTests, amqp_broker: Broker, fixture: str
) -> None:
    amqp_broker.stop()
    write_tests(f"""
        def test_one({fixture}): pass
        def test_two({fixture}): pass
    """).run(
        f"--amqp-real-url={amqp_broker.url}",
        errors=2,
        said=[f"--amqp-real-url: amqp://****@127.0.0.1:{amqp_broker.port}/*: no broker at *"],
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("guest:guest", "guest:secret"), "*connection.start-ok: 403 ACCESS_REFUSED*"),
        (("%2F", "nowhere"), "*connection.open: 530 NOT_ALLOWED*nowhere*"),
        (("amqp:", "amqps:"), "*; the port speaks no TLS: the URL begins with amqp://"),
    ],
    ids=["password", "virtual host", "TLS"],
)
def test_real_url_that_the_broker_refuses_is_an_error_without_the_password(
    write_tests: WriteTests, amqp_broker: Broker, change: tuple[str, str], said: str
) -> None:
    result = write_tests("def test_it(pika_connection): pass").run(
        f"--amqp-real-url={amqp_broker.url.replace(*change)}", errors=1, said=[f"--amqp-real-url: {said}"]
    )
    assert "secret" not in result.stdout.str()


def test_real_url_over_tls_needs_amqps_and_a_trusted_authority(
    write_tests: WriteTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = write_tests("""
        def test_it(amqp_url, pika_channel):
            assert amqp_url.startswith("amqp://")
            pika_channel.queue_declare("orders")
    """)
    with Broker(tls=True) as broker:
        plain = broker.url.replace("amqps:", "amqp:")
        inner.run(f"--amqp-real-url={plain}", errors=1, said=["*; if the port expects TLS, the URL begins *"])
        inner.run(
            f"--amqp-real-url={broker.url}", errors=1, said=["*CERTIFICATE_VERIFY_FAILED*SSL_CERT_FILE*"]
        )
        monkeypatch.setenv("SSL_CERT_FILE", str(broker.tls.ca_file))
        inner.run(f"--amqp-real-url={broker.url}", passed=1)
        assert broker.queue("orders").exists
