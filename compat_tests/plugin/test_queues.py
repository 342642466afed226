"""The fixture `amqp_queue`, on fakeamqp and, with another fakeamqp in its part, on a real broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compat_tests.plugin import portable_suite
from compat_tests.plugin.conftest import WriteTests
from compat_tests.tools.matrix import cases
from fakeamqp import Broker
from fakeamqp.portable import NoAnswer, PortableRequests, RequestRefused, ToURL, declared

SUITE = Path(portable_suite.__file__).read_text()
TESTS = sum(name.startswith("test_") for name in vars(portable_suite))


def test_a_natural_suite_runs_on_fakeamqp(write_tests: WriteTests) -> None:
    assert TESTS >= 20
    write_tests(SUITE).run(passed=TESTS)


def test_a_natural_suite_runs_at_a_real_url_and_leaves_no_queue(
    write_tests: WriteTests, amqp_broker: Broker
) -> None:
    write_tests(SUITE).run(f"--amqp-real-url={amqp_broker.url}", passed=TESTS)
    assert list(amqp_broker.queues) == []
    assert amqp_broker.wait_for(lambda: not amqp_broker.connections)


def test_every_test_of_every_run_gets_other_names(write_tests: WriteTests, amqp_broker: Broker) -> None:
    source = """
        from pathlib import Path


        @pytest.mark.parametrize("number", [1, 2])
        def test_only_registered_host_names_are_resolved(amqp_queue, number, pytestconfig):
            with Path(pytestconfig.rootpath, "names").open("a") as names:
                names.writelines(f"{amqp_queue('orders').name}\\n" for _ in range(2))
    """
    write_tests(source).run(passed=2)
    for _ in range(2):
        write_tests(source).run(f"--amqp-real-url={amqp_broker.url}", passed=2)
    names = Path("names").read_text().split()
    assert len(set(names)) == len(names) == 12
    assert all(name.startswith("orders-") for name in names)


def test_queue_declared_by_the_app_is_deleted_unless_it_existed_before(
    write_tests: WriteTests, amqp_broker: Broker
) -> None:
    amqp_broker.load_definitions({"queues": [{"name": "kept", "vhost": "/", "durable": True}]})
    write_tests("""
        def test_it(amqp_queue, pika_channel):
            kept, own = amqp_queue("kept", declare=False), amqp_queue("own", declare=False)
            assert (kept.exists, own.exists) == (True, False)
            pika_channel.queue_declare("own", durable=True)
            assert own.exists
    """).run(f"--amqp-real-url={amqp_broker.url}", passed=1)
    assert [queue.name for queue in amqp_broker.queues] == ["kept"]


def test_a_failed_test_leaves_no_queue_at_a_real_url(write_tests: WriteTests, amqp_broker: Broker) -> None:
    write_tests("""
        def test_it(amqp_queue, pika_connection):
            first, second = amqp_queue("orders"), amqp_queue("orders", arguments={"x-max-length": 1})
            channel = pika_connection.channel()
            channel.basic_consume(first.name, print)
            second.publish(b"two apples")
            first.wait_for(ready=1, timeout=0.05)
    """).run(
        f"--amqp-real-url={amqp_broker.url}",
        failed=1,
        said=["E * fakeamqp.WaitTimeout: *to have exactly 1 ready, but it has 0 ready and 1 consumers"],
    )
    assert list(amqp_broker.queues) == []


def test_a_broker_in_the_event_loop_with_tls_in_a_simulation_and_with_virtual_time(
    write_tests: WriteTests,
) -> None:
    write_tests("""
        async def publish(connection, queue, **properties):
            channel = await connection.channel()
            message = aio_pika.Message(b"two apples", **properties)
            await channel.default_exchange.publish(message, queue.name)

        @pytest.mark.asyncio
        @pytest.mark.amqp(runtime="asyncio")
        async def test_in_the_loop(amqp_queue, aio_pika_connection):
            orders = amqp_queue("orders")
            later = asyncio.ensure_future(orders.get.aio())
            await publish(aio_pika_connection, orders)
            assert (await later).body == b"two apples"
            orders.publish(b"one pear")
            assert (orders.ready, orders.get().body, orders.purge()) == (1, b"one pear", 0)

        @pytest.mark.amqp(simulated=True, seeds=2, checks=True)
        async def test_in_a_simulation(amqp_queue, aio_pika_connection, amqp_simulation):
            orders = amqp_queue("orders")
            await publish(aio_pika_connection, orders)
            await orders.wait_for.aio(ready=1)
            await asyncio.sleep(3600)
            assert (await orders.get.aio()).body == b"two apples"

        @pytest.mark.amqp(
            tls=True, virtual_hosts=["shop"], users={"al ice": "p/w@"}, checks=True
        )
        def test_tls(amqp_queue, pika_channel):
            here, there = amqp_queue("orders"), amqp_queue("orders", virtual_host="shop")
            there.publish(b"one pear")
            pika_channel.confirm_delivery()
            pika_channel.basic_publish("", here.name, b"two apples")
            assert (here.get().body, there.get().body) == (b"two apples", b"one pear")
            assert (here.virtual_host, there.virtual_host) == ("/", "shop")

        def test_virtual_time(amqp_queue, amqp_clock):
            orders = amqp_queue("orders", arguments={"x-message-ttl": 60_000})
            orders.publish(b"two apples")
            with pytest.raises(AssertionError, match="expires 1 message in 60 s: broker.clock.advance"):
                orders.wait_for(ready=0, timeout=0.05)
            amqp_clock.advance(60)
            orders.wait_for(ready=0)

        def test_the_broker_comes_back(amqp_queue, amqp_broker):
            orders = amqp_queue("orders")
            amqp_broker.restart()
            orders.wait_for(ready=0)
            amqp_broker.reset()
            assert not orders.exists
            amqp_broker.stop()
            with pytest.raises(Exception, match="does not run; start it first"):
                orders.purge()
    """).run(passed=5)


def test_the_queue_is_no_client_of_the_app(write_tests: WriteTests) -> None:
    """Faults do not hit it, it is in no list, and of the trace it has only what happens to messages."""
    write_tests("""
        def test_it(amqp_queue, amqp_broker, amqp_faults, pika_channel):
            amqp_faults.on("queue.declare").optional().close_connection(320)
            amqp_faults.on("basic.get").optional().drop()
            amqp_faults.on("basic.publish").optional().nack()
            amqp_faults.network.refuse()
            orders = amqp_queue("orders")
            orders.publish(b"two apples")
            assert (orders.ready, len(amqp_broker.connections)) == (1, 1)
            assert orders.get().body == b"two apples"
            names = [event.name for event in amqp_broker.trace.events if event.alias != "c1"]
            assert names == ["queue declared", "published", "enqueued", "delivered"]
            dropped = amqp_faults.on("basic.deliver").once().drop()
            pika_channel.basic_consume(orders.name, print)
            orders.publish(b"two pears")
            dropped.wait(1)
    """).run(passed=1)


def test_a_wrong_argument_or_use_of_a_queue_is_an_error_that_says_why(write_tests: WriteTests) -> None:
    declaring = {
        "exclusive=True": "only the connection that declares an exclusive queue can use it",
        "durabel=True": "has no argument 'durabel'; did you mean 'durable'?",
        "routing_key='a'": "a binding needs an exchange as well",
        "exchange='nix'": "the broker refuses queue.bind: 404 NOT_FOUND - no exchange 'nix' in vhost '/'",
        "type='qourum'": "there is no such type; did you mean 'quorum'?",
        "type='quorum', arguments={'x-queue-type': 'stream'}": "contradicts x-queue-type",
        "arguments={'x-max-length': 'a'}": "406 PRECONDITION_FAILED - invalid arg 'x-max-length'",
        "durable='no'": "durable must be True or False",
        "arguments=['x-max-length']": "arguments must be a mapping",
        "exchange=5": "exchange must be the name of an exchange",
        "name='x' * 300": "has 1 to 255 bytes, and this has 309",
        "declare=0": "declare must be True or False",
        "declare=False, type='quorum'": "the app declares the queue; leave out type",
        "declare=False, durable=False": "the app declares the queue; leave out durable",
        "declare=False, exchange='amq.topic'": "the app declares the queue; leave out exchange",
        "virtual_host='nix'": "the broker refuses connection.open: 530 NOT_ALLOWED",
    }
    using = {
        "wait_for(3)": "Give it by name, such as ready=3",
        "wait_for(unacked=1)": "tells only the numbers of ready messages and of consumers",
        "wait_for(redy=1)": "wait_for knows no number 'redy'; did you mean 'ready'?",
        "wait_for(ready='a')": "ready='a': give a number",
        "publish('a', mesage_id='1')": "did you mean 'message_id'?",
        "publish({'a': 1})": "queue.publish: the body is dict, and must be bytes or str",
        "publish(3)": "queue.publish: the body is int, and must be bytes or str",
        "publish()": "queue.publish: no body",
        "bind('nix')": "404 NOT_FOUND - no exchange 'nix'",
    }
    missing = {
        "purge()": "404 NOT_FOUND - no queue",
        "ready": "404 NOT_FOUND - no queue",
        "publish('a')": "there is no queue 'queue-",
        "get(timeout=0)": "waited 0 s for a message in queue 'queue-",
        "wait_for(timeout=0.01)": "to exist, but it does not exist",
    }
    write_tests(f"""
        import re


        @pytest.mark.parametrize(("arguments", "text"), {list(declaring.items())!r})
        def test_declaring(amqp_queue, arguments, text):
            with pytest.raises(Exception, match=re.escape(text)):
                eval(f"amqp_queue({{arguments}})")
            amqp_queue()

        @pytest.mark.parametrize(("call", "text"), {list(using.items())!r})
        def test_using(amqp_queue, call, text):
            queue = amqp_queue()
            with pytest.raises(Exception, match=re.escape(text)):
                eval(f"queue.{{call}}")
            assert queue.ready == 0

        @pytest.mark.parametrize(("call", "text"), {list(missing.items())!r})
        def test_missing(amqp_queue, call, text):
            queue = amqp_queue()
            queue.delete()
            with pytest.raises(Exception, match=re.escape(text)):
                eval(f"queue.{{call}}")
    """).run(passed=len(declaring) + len(using) + len(missing))


def test_publish_of_json_sets_the_content_type(amqp_queue: Any) -> None:
    orders = amqp_queue("orders")
    orders.publish(json={"fruit": "apple"})
    message = orders.get()
    assert (message.body, message.properties["content_type"]) == (b'{"fruit": "apple"}', "application/json")


def test_a_queue_at_a_url_survives_the_loss_of_its_connection(amqp_broker: Broker) -> None:
    requests = PortableRequests(ToURL(amqp_broker.url))
    orders = declared(requests, "orders")
    orders.publish(b"a" * 300_000)
    with cases() as case:
        for crash in (False, True):
            with case(f"{crash=}"):
                amqp_broker.restart(crash=crash)
                assert orders.ready == 0
                orders.publish(b"a" * 300_000, delivery_mode=2)
                assert orders.get().body == b"a" * 300_000
    amqp_broker.restart()
    requests.close()
    assert not amqp_broker.connections
    amqp_broker.stop()
    with pytest.raises(Exception, match=r"no broker at 127.0.0.1"):
        orders.purge()


def test_a_refused_login_and_a_silent_broker_are_errors(amqp_broker: Broker) -> None:
    wrong = amqp_broker.url.replace("guest:guest", "guest:wrong")
    with pytest.raises(RequestRefused, match=r"refuses connection.start-ok: 403 ACCESS_REFUSED"):
        declared(PortableRequests(ToURL(wrong)), "orders")
    amqp_broker.faults.on("queue.declare").close_connection(320, "enough")
    with pytest.raises(RequestRefused, match=r"refuses queue.declare: 320 enough"):
        declared(PortableRequests(ToURL(amqp_broker.url)), "orders")
    amqp_broker.faults.clear()
    amqp_broker.faults.network.cut_after(1)
    with pytest.raises(NoAnswer):
        declared(PortableRequests(ToURL(amqp_broker.url)), "orders")


def test_a_wait_in_a_coroutine_says_that_it_blocks_the_loop(
    write_tests: WriteTests, amqp_broker: Broker
) -> None:
    write_tests("""
        @pytest.mark.asyncio
        async def test_it(amqp_queue):
            amqp_queue("orders").wait_for(ready=1, timeout=0.01)
    """).run(
        f"--amqp-real-url={amqp_broker.url}", failed=1, said=["*so blocked the event loop*wait_for.aio*"]
    )


def test_two_threads_use_a_queue_while_the_broker_works(write_tests: WriteTests) -> None:
    write_tests("""
        from concurrent.futures import ThreadPoolExecutor

        def test_it(amqp_queue):
            orders = amqp_queue("orders")

            def take(_):
                return orders.get().body

            with ThreadPoolExecutor(4) as pool:
                taken = pool.map(take, range(20))
                for number in range(20):
                    orders.publish(str(number))
                assert sorted(map(int, taken)) == list(range(20))
    """).run(passed=1)
