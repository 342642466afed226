"""The face of the broker: what a test holds in its hand, with pika at the other end."""

from __future__ import annotations

import asyncio
import inspect
import json
import socket
import threading
from array import array
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pika
import pika.exceptions
import pytest

from compat_tests.tools.matrix import cases, rows
from fakeamqp import Broker, BrokerError, FakeAMQPError, Permission, Personality, User, WaitTimeout
from fakeamqp.errors import DefinitionsError, NoSuchQueue, NotPublished, PortInUse
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.portable import PortableRequests, ToURL, declared
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import method_frame
from fakeamqp.settings import PERSONALITIES


def connect(broker: Broker, **parameters: object) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters(broker.host, broker.port, **parameters))


# --- life ------------------------------------------------------------------------------------------------


def test_broker_accepts_connections_after_start_and_leaves_no_thread_after_stop() -> None:
    before = set(threading.enumerate())
    broker = Broker()
    assert not broker.running
    assert broker.start() is broker
    with socket.create_connection((broker.host, broker.port)):
        assert broker.running
    broker.stop()
    broker.stop()
    assert not broker.running
    assert set(threading.enumerate()) <= before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((broker.host, broker.port))


def test_a_broker_can_be_used_in_a_coroutine() -> None:
    async def use() -> bool:
        async with Broker() as broker:
            return broker.running

    assert asyncio.run(use())


def test_start_on_a_port_in_use_is_an_error(broker: Broker) -> None:
    with pytest.raises(PortInUse, match=f"port {broker.port} on 127.0.0.1 is in use"):
        Broker(port=broker.port).start()


def test_stop_closes_client_connections_with_code_320(broker: Broker) -> None:
    connection = connect(broker)
    broker.stop()
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        connection.process_data_events(time_limit=5)
    assert closed.value.reply_code == 320
    assert "shutdown" in closed.value.reply_text


def test_start_after_stop_keeps_the_port_and_durable_queues() -> None:
    broker = Broker().start()
    port = broker.port
    broker._reader.read(
        lambda state: state.virtual_hosts["/"].queues.declare("durable", QueueDeclaration(durable=True))
    )
    broker._reader.read(lambda state: state.virtual_hosts["/"].queues.declare("transient"))
    broker.stop()
    with broker:
        assert broker.port == port
        assert [queue.name for queue in broker.queues] == ["durable"]


def test_restart_keeps_the_port_durable_entities_and_persistent_messages(broker: Broker) -> None:
    port = broker.port
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("durable", durable=True)
        channel.queue_declare("transient")
        channel.basic_publish("", "durable", b"kept", pika.BasicProperties(delivery_mode=2))
        channel.basic_publish("", "durable", b"lost")
        channel.exchange_declare("events", durable=True)
        channel.queue_bind("durable", "events", "k")
        broker.queue("durable").wait_for(ready=2)
        broker.restart()
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker):
            connection.process_data_events(time_limit=5)
    assert broker.port == port
    assert [message.body for message in broker.queue("durable").messages] == [b"kept"]
    assert not broker.queue("transient").exists
    assert [binding.destination for binding in broker.exchange("events").bindings] == ["durable"]
    with connect(broker) as again:
        assert again.channel().basic_get("durable")[2] == b"kept"


def test_the_port_stays_open_during_a_restart(broker: Broker) -> None:
    restarted = threading.Event()
    ends: list[OSError] = []

    def dial_again_and_again() -> None:
        while not restarted.is_set():
            try:
                socket.create_connection((broker.host, broker.port), timeout=20).close()
            except OSError as error:
                ends.append(error)

    dialler = threading.Thread(target=dial_again_and_again)
    dialler.start()
    for _ in range(50):
        broker.restart()
    restarted.set()
    dialler.join()
    assert [error for error in ends if not isinstance(error, ConnectionResetError)] == []
    assert broker.admin.failures == ()


def test_crash_loses_unconfirmed_and_keeps_confirmed_messages(broker: Broker) -> None:
    persistent = pika.BasicProperties(delivery_mode=2)
    connection = connect(broker)
    told = connection.channel()
    told.queue_declare("q", durable=True)
    told.confirm_delivery()
    told.basic_publish("", "q", b"confirmed", persistent)
    connection.channel().basic_publish("", "q", b"unconfirmed", persistent)
    broker.queue("q").wait_for(ready=2)
    broker.restart(crash=True)
    assert [message.body for message in broker.queue("q").messages] == [b"confirmed"]
    with pytest.raises((pika.exceptions.StreamLostError, pika.exceptions.ConnectionClosed)) as lost:
        connection.process_data_events(time_limit=5)
    assert not isinstance(lost.value, pika.exceptions.ConnectionClosedByBroker)


def test_reset_removes_queues_history_and_connections_and_keeps_the_port() -> None:
    with Broker(users={"alice": "secret"}, virtual_hosts=["other"]) as broker:
        port = broker.port
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        connection.channel().queue_declare("q", durable=True)
        broker.publish(b"x", routing_key="q")
        broker.reset()
        assert broker.queues == ()
        assert len(broker.published) == 0
        assert broker.connections == ()
        assert "q" not in broker.trace.timeline()
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker):
            connection.process_data_events(time_limit=5)
        assert broker.port == port
        pika.BlockingConnection(pika.URLParameters(broker.url)).close()


# --- who may do what -------------------------------------------------------------------------------------


def test_users_replace_guest_and_the_url_names_the_first() -> None:
    with Broker(
        users={"alice": "p@ss/word", "bob": {"password": "b", "permissions": {"/": ("^$", ".*", ".*")}}}
    ) as broker:
        pika.BlockingConnection(pika.URLParameters(broker.url)).close()
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            connect(broker)
        bob = connect(broker, credentials=pika.PlainCredentials("bob", "b"))
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
            bob.channel().queue_declare("q")
        assert refused.value.reply_code == 403
        assert refused.value.reply_text.startswith("ACCESS_REFUSED - configure access to queue 'q'")
        bob.close()


def test_users_may_be_given_as_objects_and_are_not_shared() -> None:
    alice = User("alice", "secret", (), {"/": Permission(configure="^$")})
    with Broker(users=[alice]) as first, Broker(users=[alice]) as second:
        first._reader.read(lambda state: state.access.users["alice"].permissions.clear())
        assert (
            second._reader.read(lambda state: dict(state.access.users["alice"].permissions))
            == alice.permissions
        )


def test_new_virtual_host_is_open_to_users_with_all_permissions(broker: Broker) -> None:
    broker.admin.add_virtual_host("new")
    with connect(broker, virtual_host="new") as connection:
        connection.channel().queue_declare("q")
    assert broker.queue("q", virtual_host="new").exists
    assert not broker.queue("q").exists


@rows(
    "arguments, words",
    ({"personality": "rabbitmq-4.3x"}, "did you mean 'rabbitmq-4.3'"),
    ({"permit": ["gobal_qos"]}, "did you mean 'global_qos'"),
    ({"deny": "transient_queues"}, "did you mean 'transient_nonexcl_queues'"),
    ({"permit": ["classic_queue_mirroring"]}, "rabbitmq-4.3 has it no more"),
    ({"heartbeats": 5}, "did you mean 'heartbeat'"),
    ({"personalty": "spec"}, "did you mean 'personality'"),
    ({"clock": "virtaul"}, "did you mean 'virtual'"),
    ({"heartbeat": 5}, r'personality=Personality\("rabbitmq-4.3"\).with_\(heartbeat=5\)'),
    ({"clock": "sundial"}, "'real', 'virtual', 'wall'"),
    ({"now": 1_700_000_000}, "add clock='virtual'"),
    ({"clock": "wall", "now": 1_700_000_000}, "this one is wall"),
    ({"clock": "virtual", "now": "tomorrow"}, "now='tomorrow' must be"),
    ({"users": {"a": {"pasword": "x"}}}, "did you mean 'password'"),
    ({"definitions": {"quues": []}}, "did you mean 'queues'"),
    ({"definitions": {"queues": [{"nmae": "q"}]}}, "did you mean 'name'"),
    ({"definitions": {"policies": [{"name": "p"}]}}, "'definition' is missing"),
    ({"definitions": "/no/such/file.json"}, "cannot read"),
    ({"host": "127.0.0.1:5672"}, "without a port"),
    ({"port": "5672"}, "a number from 0 to 65535"),
    ({"virtual_hosts": "shop"}, r"a list of names, such as \["),
    ({"tls": "cert.pem"}, "ServerTLS.from_files"),
    ({"users": ["bob"]}, "'bob' has no password"),
    ({"users": {"bob": 5}}, "give a password"),
    ({"users": {"bob": {"tags": "administrator"}}}, "tags must be a list"),
    ({"users": {"bob": {"permissions": {"/": ".*"}}}}, "configure, write, read"),
    ({"bounds": {"consumers_per_channel": 5}}, "Bounds"),
    ({"management_hosts": ["broker.local"]}, "add management=True"),
    ({"personality": replace(PERSONALITIES["spec"], heartbeat="x")}, "heartbeat must be a whole number"),
)
def test_invalid_broker_arguments_are_refused_with_a_helpful_message(
    arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(FakeAMQPError, match=words):
        Broker(**arguments)  # type: ignore[arg-type]


@rows(
    "choices, words",
    ({"hartbeat": 5}, "did you mean 'heartbeat'"),
    ({"not_implemented": ("chanel.resume",)}, "did you mean 'channel.resume'"),
    ({"not_implemented": ("channel",)}, "no broker can be without 'channel'"),
    ({"not_implemented": ("connection.open",)}, "no broker can be without 'connection.open'"),
    ({"not_implemented": "tx"}, "must be a list of texts, not 'tx'"),
    ({"mechanisms": ["PLIAN"]}, "did you mean 'PLAIN'"),
    ({"commit_to_deleted": "ignore"}, "must be 'ignored' or"),
)
def test_invalid_choices_of_a_personality_are_refused_with_a_helpful_message(
    choices: dict[str, Any], words: str
) -> None:
    with pytest.raises(FakeAMQPError, match=words):
        Broker(personality=Personality("rabbitmq-4.3").with_(**choices))


def test_personality_of_a_name_is_the_one_of_the_table_and_takes_no_choices() -> None:
    assert Personality("spec") is PERSONALITIES["spec"]
    with pytest.raises(FakeAMQPError, match=r"did you mean 'rabbitmq-4\.3'"):
        Personality("rabbitmq-4.3x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Personality\('spec'\)\.with_"):
        Personality("spec", heartbeat=0)  # type: ignore[call-arg]


WRONG: dict[str, tuple[object, ...]] = {
    "host": (5, None, "", b"::1"),
    "port": (-1, 70_000, 1.5, True, None),
    "personality": (5, None, "", ["spec"]),
    "clock": (None, True, ["real"]),
    "now": (True, "2024-01-01"),
    "tls": (1, None, {}),
    "users": ("bob", 5, {5: "x"}, {"": "x"}, {"bob": {"password": 5}}, {"bob": {"permissions": (".*",)}}),
    "virtual_hosts": (5, [5], [""], ["x" * 256], None, {"shop": {}}),
    "definitions": (5, [], b"x", True),
    "seed": (1.5, True, b"x", []),
    "races": ("yes", 1.5),
    "permit": (5, [5], None),
    "deny": (5, [5], None),
    "history": (-1, "x", None, 1.5, True),
    "trace": (-1, "x", None, 1.5, True),
    "memory_limit": (0, "x", 1.5, True),
    "bounds": (5, "x"),
    "management": (1, None, "yes"),
    "management_port": (-1, 70_000, "x", True),
    "management_hosts": ("broker.local", 5, [5], None),
    "control": (1, None, "yes"),
    "control_port": (-1, 70_000, "x", True),
    "runtime": (None, "threads", ["thread"]),
}


@pytest.mark.threads_only
def test_each_argument_of_a_broker_takes_only_values_of_its_type() -> None:
    assert list(WRONG) == [name for name in inspect.signature(Broker).parameters if name != "misspelled"]
    for name, values in WRONG.items():
        for value in values:
            arguments: dict[str, Any] = {name: value}
            if name == "now":
                arguments["clock"] = "virtual"
            with pytest.raises(FakeAMQPError, match=name.rstrip("s")):
                Broker(**arguments)


def test_each_choice_of_a_personality_takes_only_values_of_its_type() -> None:
    for choice in fields(Personality):
        wrong: list[Any] = [None, object(), 1j]
        if choice.type in ("bool", "int", "float"):
            wrong += [-1, "1"]
        elif choice.type != "bytes":
            wrong += [5, True, {1: 2}]
        for value in wrong:
            with pytest.raises(FakeAMQPError, match=choice.name):
                Personality("rabbitmq-4.3").with_(**{choice.name: value})


def test_broker_calls_refuse_invalid_arguments_like_the_constructor() -> None:
    broker = Broker()
    for wrong in (None, 5, []):
        with pytest.raises(BrokerError, match="definitions must be the path"):
            broker.load_definitions(wrong)  # type: ignore[arg-type]
    for name in ("", 5, "x" * 256):
        with pytest.raises(BrokerError, match="1 to 255 bytes"):
            broker.admin.add_virtual_host(name)  # type: ignore[arg-type]
    with pytest.raises(FakeAMQPError, match="tags must be a list"):
        broker.admin.add_user("bob", tags="administrator")


def test_waits_refuse_negative_timeouts_and_other_types(broker: Broker) -> None:
    broker.load_definitions({"queues": [{"name": "q", "vhost": "/"}]})
    rule = broker.faults.on("basic.publish").optional().nack()
    service = broker.admin.add_service("ping", print)  # type: ignore[arg-type]
    requests = PortableRequests(ToURL(broker.url))
    portable = declared(requests, "p")
    waits: list[Callable[[Any], object]] = [
        lambda timeout: broker.wait_for(lambda: False, timeout=timeout),
        lambda timeout: asyncio.run(broker.wait_for.aio(lambda: False, timeout=timeout)),
        lambda timeout: broker.queue("q").wait_for(ready=1, timeout=timeout),
        lambda timeout: broker.queue("q").wait_until_consumed(timeout=timeout),
        lambda timeout: broker.expect_published(timeout=timeout),
        lambda timeout: broker.wait_until_idle(timeout=timeout),
        lambda timeout: broker.expect_no_findings(timeout=timeout),
        lambda timeout: rule.wait(1, timeout=timeout),
        lambda timeout: service.wait(1, timeout=timeout),
        lambda timeout: portable.wait_for(ready=1, timeout=timeout),
        lambda timeout: asyncio.run(portable.get.aio(timeout=timeout)),
    ]
    with cases() as case:
        for number, wait in enumerate(waits):
            for timeout in ("1", None, True, -1, float("nan")):
                with case(f"{number} {timeout!r}"), pytest.raises(BrokerError, match="number of seconds"):
                    wait(timeout)
    requests.close()


def test_personality_choices_accept_lists_and_whole_numbers() -> None:
    with Broker(
        personality=Personality("rabbitmq-4.3").with_(
            mechanisms=["PLAIN"], not_implemented=["tx"], send_timeout=5
        )
    ) as broker:  # type: ignore[arg-type]
        connect(broker).close()


# --- before the start and after the stop -----------------------------------------------------------------


DURABLE = {"vhost": "/", "durable": True}
FIREHOSE = {
    "queues": [{"name": name, **DURABLE} for name in ("q", "log")],
    "bindings": [
        {
            "source": "amq.rabbitmq.trace",
            "vhost": "/",
            "destination": "log",
            "destination_type": "queue",
            "routing_key": "publish.#",
        }
    ],
}


def test_preparations_before_the_start_take_effect_at_the_start() -> None:
    broker = Broker()
    broker.load_definitions({"users": [{"name": "lost", "password": "x", "tags": []}]})
    broker.reset()
    broker.load_definitions(FIREHOSE)
    broker.admin.set_firehose()
    broker.admin.set_policy("short", "^q$", {"max-length": 1})
    broker.admin.add_virtual_host("shop")
    broker.admin.add_user("bob", "secret")
    called: list[object] = []
    broker.admin.add_service("ping", called.append)  # type: ignore[arg-type]
    refused = broker.faults.on("basic.publish", body=b"no").nack()
    broker.publish(b"0", routing_key="q", delivery_mode=1)
    with broker:
        login = pika.PlainCredentials("bob", "secret")
        connect(broker, credentials=login, virtual_host="shop").close()
        with connect(broker) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            assert channel.basic_get("q", auto_ack=True)[2] == b"0"
            for body in (b"1", b"2"):
                channel.basic_publish("", "q", body)
            channel.basic_publish("amq.system", "ping", b"")
            with pytest.raises(pika.exceptions.NackError):
                channel.basic_publish("", "q", b"no")
        assert (broker.queue("q").ready, broker.queue("log").ready) == (1, 4)
        assert (len(called), refused.hits) == (1, 1)
        assert "lost" not in {user["name"] for user in broker.definitions()["users"]}


def test_stopped_broker_refuses_connect_restart_publish_and_firehose() -> None:
    calls: list[Callable[[Broker], object]] = [
        lambda stopped: stopped.connect(),
        lambda stopped: stopped.restart(),
        lambda stopped: stopped.publish(b"lost", routing_key="q"),
        lambda stopped: stopped.admin.set_firehose(),
    ]
    broker = Broker(definitions=FIREHOSE)
    for call in calls[:2]:
        with pytest.raises(BrokerError, match="the broker is not started: use it as"):
            call(broker)
    broker.start()
    broker.stop()
    for call in calls:
        with pytest.raises(BrokerError, match="the broker does not run; start it first"):
            call(broker)
    assert (len(broker.published), broker.queue("q").ready) == (0, 0)


# --- ways in ---------------------------------------------------------------------------------------------


def test_a_connected_socket_reaches_the_broker_without_a_port(broker: Broker) -> None:
    with broker.connect() as client:
        client.sendall(b"AMQP\x00\x00\x09\x01")
        assert client.recv(1) == b"\x01"


def test_guest_may_log_in_over_a_connected_socket(broker: Broker) -> None:
    login = m.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US")
    with broker.connect() as client:
        client.sendall(b"AMQP\x00\x00\x09\x01" + method_frame(0, login.encode()))
        octets = b""
        while m.ConnectionTune().encode()[:4] not in octets:
            received = client.recv(4096)
            assert received, "the broker has closed the socket"
            octets += received


def test_an_intercepted_address_leads_to_the_broker(broker: Broker) -> None:
    with broker.intercept("rabbit.prod.example:5672"):
        connection = pika.BlockingConnection(pika.ConnectionParameters("rabbit.prod.example", 5672))
        connection.channel().queue_declare("q")
        connection.close()
    assert broker.queue("q").exists
    with pytest.raises((pika.exceptions.AMQPError, socket.gaierror)):
        pika.BlockingConnection(
            pika.ConnectionParameters("rabbit.prod.example", 5672, connection_attempts=1, socket_timeout=1)
        )


def test_tls_client_connects_with_the_throwaway_authority_also_after_a_restart() -> None:
    with Broker(tls=True) as broker:
        parameters = pika.URLParameters(broker.url)
        parameters.ssl_options = pika.SSLOptions(broker.tls.client_context, broker.host)
        with pika.BlockingConnection(parameters) as connection:
            connection.channel().queue_declare("q")
        broker.restart()
        with pika.BlockingConnection(parameters) as connection:
            connection.channel()
        assert broker.url.startswith("amqps://")


def test_a_client_certificate_logs_in_by_its_name() -> None:
    with Broker(tls=True, users={"carol": {"tags": ()}}) as broker:
        shown = broker.tls.client_certificate("carol")
        parameters = pika.ConnectionParameters(
            broker.host,
            broker.port,
            ssl_options=pika.SSLOptions(shown.context, broker.host),
            credentials=pika.credentials.ExternalCredentials(),
        )
        connection = pika.BlockingConnection(parameters)
        assert [client.user for client in broker.connections] == ["carol"]
        connection.close()


def test_broker_on_ipv6_loopback_accepts_connections() -> None:
    try:
        broker = Broker(host="::1").start()
    except FakeAMQPError as problem:
        pytest.skip(f"no IPv6 loopback here: {problem}")
    with broker:
        assert broker.url == f"amqp://guest:guest@[::1]:{broker.port}/%2F"
        connect(broker).close()


# --- looking ---------------------------------------------------------------------------------------------


def test_queue_inspector_shows_counts_and_messages(broker: Broker) -> None:
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("orders")
        for body in (b"one", b"two"):
            channel.basic_publish("", "orders", body, pika.BasicProperties(headers={"n": 1}))
        queue = broker.queue("orders")
        queue.wait_for(ready=2)
        channel.basic_get("orders")
        assert (queue.ready, queue.unacked) == (1, 1)
        assert [message.body for message in queue.messages] == [b"two", b"one"]
        assert [message.state for message in queue.messages] == ["ready", "unacked"]
        with pytest.raises(NoSuchQueue, match="did you mean 'orders'"):
            _ = broker.queue("order").ready


def test_wait_for_calls_the_predicate_again_without_events_of_the_broker(broker: Broker) -> None:
    asked: list[int] = []

    def tenth_time() -> bool:
        asked.append(len(asked))
        return len(asked) == 10

    broker.wait_for(tenth_time, timeout=20)


def test_wait_for_with_timeout_0_returns_the_result_of_a_single_call(broker: Broker) -> None:
    asked: list[int] = []

    def ask() -> list[int]:
        asked.append(1)
        return []

    assert broker.wait_for(ask, timeout=0) == [] and asked == [1]
    assert asyncio.run(broker.wait_for.aio(lambda: None, timeout=0)) is None
    assert broker.wait_for(lambda: broker.port, timeout=0) == broker.port


def test_expect_published_finds_a_message_of_a_client(broker: Broker) -> None:
    with connect(broker) as connection:
        channel = connection.channel()
        channel.exchange_declare("events", "topic")
        channel.basic_publish("events", "order.placed", json.dumps({"id": 1}).encode())
        [found] = broker.expect_published(exchange="events", routing_key="order.*", body={"id": 1}, count=1)
        assert found.unroutable
        with pytest.raises(NotPublished, match=r"order\.placed"):
            broker.expect_published(routing_key="order.paid", timeout=0.01)


@rows(
    "body, stored",
    (b"x", b"x"),
    ("h\u00e4h", b"h\xc3\xa4h"),
    ("", b""),
    (bytearray(b"x"), b"x"),
    (memoryview(b"axb")[1:2], b"x"),
    (array("H", [0x4141]), b"AA"),
)
def test_publish_accepts_bytes_like_and_text_bodies(body, stored) -> None:
    with Broker() as broker:
        assert broker.publish(body).body == stored


@pytest.mark.parametrize("body", [5, 0, True, 1.5, {"a": 1}, [1, 2], (65,), object(), Broker])
def test_publish_refuses_bodies_of_other_types(body) -> None:
    with Broker() as broker:
        with pytest.raises(TypeError) as problem:
            broker.publish(body, routing_key="q")
        assert str(problem.value) == (
            f"broker.publish: the body is {type(body).__name__}, and must be bytes or str; what is to be "
            "encoded as JSON goes as json=, such as broker.publish(json={...})"
        )
        assert broker.published.with_own == []


def test_a_value_can_be_published_as_json() -> None:
    with Broker() as broker:
        view = broker.publish(json={"id": 7, "name": "h\u00e4h"}, routing_key="q")
        assert (view.json(), view.content_type) == ({"id": 7, "name": "h\u00e4h"}, "application/json")
        assert broker.publish(json=None).body == b"null"
        assert broker.publish(json=[], content_type="text/x").content_type == "text/x"
        broker.expect_published(body={"id": 7, "name": "h\u00e4h"}, include_own=True, timeout=0)
        with pytest.raises(TypeError, match="body and json are given"):
            broker.publish(b"x", json={})
        with pytest.raises(TypeError, match="no body; give bytes, text, or a value as json="):
            broker.publish(routing_key="q")


def test_publishing_without_a_client_reaches_consumers(broker: Broker) -> None:
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        got: list[tuple[bytes, object]] = []
        channel.basic_consume("q", lambda c, m, p, body: got.append((body, p.headers)), auto_ack=True)
        view = broker.publish("häh", routing_key="q", headers={"a": 1}, content_type="text/plain")
        assert view.queues == ("q",)
        connection.process_data_events(time_limit=5)
        assert got == [("häh".encode(), {"a": 1})]
    with pytest.raises(FakeAMQPError, match="did you mean 'headers'"):
        broker.publish(b"x", header={})
    with pytest.raises(FakeAMQPError, match="invalid expiration 'soon'"):
        broker.publish(b"x", expiration="soon")
    for unfit in ({"routing_key": "k" * 256}, {"priority": 300}, {"headers": {"a": object()}}):
        with pytest.raises(FakeAMQPError):
            broker.publish(b"x", **unfit)  # type: ignore[arg-type]
    with pytest.raises(FakeAMQPError, match="no exchange 'nope'"):
        broker.publish(b"x", exchange="nope")


def test_wait_until_idle_returns_after_all_sent_messages_are_processed(broker: Broker) -> None:
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        for _ in range(1000):
            channel.basic_publish("", "q", b"x" * 100)
        broker.wait_until_idle(timeout=10)
        assert broker.queue("q").ready == 1000


def test_wait_until_idle_timeout_names_the_connection_with_unread_output(broker: Broker) -> None:
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        channel.basic_consume("q", lambda *_: None, auto_ack=True)
        for _ in range(100):
            broker.publish(bytes(100_000), routing_key="q")
        with pytest.raises(BrokerError, match=r"127\.0\.0\.1:\d+ -> .* has not read \d+ bytes"):
            broker.wait_until_idle(timeout=0.01)
        while broker.queue("q").ready:
            connection.process_data_events(time_limit=1)


def closed_by(connection: pika.BlockingConnection) -> tuple[int, str]:
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        connection.process_data_events(time_limit=5)
    return closed.value.reply_code, closed.value.reply_text


def test_removing_a_user_closes_its_connections(broker: Broker) -> None:
    broker.admin.add_user("ann", "p")
    credentials = pika.PlainCredentials("ann", "p")
    stays, goes = connect(broker), connect(broker, credentials=credentials)
    goes.channel().queue_declare("hers", exclusive=True)
    broker.admin.remove_user("ann")
    assert closed_by(goes) == (320, "CONNECTION_FORCED - user 'ann' is deleted")
    assert "hers" not in [queue.name for queue in broker.queues]
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        connect(broker, credentials=credentials)
    stays.channel().queue_declare("q")
    stays.close()


def test_removing_a_virtual_host_closes_its_connections_and_drops_its_messages(broker: Broker) -> None:
    broker.admin.add_virtual_host("there")
    stays, goes = connect(broker), connect(broker, virtual_host="there")
    channel = goes.channel()
    channel.queue_declare("q", durable=True)
    channel.queue_declare("consumed")
    channel.basic_consume("consumed", lambda *_: None, consumer_tag="tag")
    broker.publish("m", routing_key="q", virtual_host="there")
    broker.admin.remove_virtual_host("there")
    assert closed_by(goes) == (320, "CONNECTION_FORCED - vhost 'there' is deleted")
    timeline = str(broker.trace.timeline())
    assert timeline.index("basic.cancel") < timeline.index("vhost 'there' is deleted")
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError, match="vhost there not found"):
        connect(broker, virtual_host="there")
    assert [each.queue for each in broker.dropped] == ["q"]
    broker.admin.add_virtual_host("there")
    again = connect(broker, virtual_host="there")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        again.channel().queue_declare("q", passive=True)
    for connection in (stays, again):
        connection.close()


def test_permissions_of_a_removed_virtual_host_are_not_restored(broker: Broker) -> None:
    broker.admin.add_virtual_host("there")
    broker.admin.add_user("ann", "p", permissions={"there": (".*", ".*", ".*")})
    broker.admin.remove_virtual_host("there")
    broker.admin.add_virtual_host("there")
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError, match=r"refused for user 'ann'"):
        connect(broker, virtual_host="there", credentials=pika.PlainCredentials("ann", "p"))


def test_cleared_permissions_refuse_operations_on_an_open_connection(broker: Broker) -> None:
    broker.admin.add_user("ann", "p")
    connection = connect(broker, credentials=pika.PlainCredentials("ann", "p"))
    broker.admin.clear_permissions("ann")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
        connection.channel().queue_declare("q")
    assert refused.value.reply_code == 403
    connection.close()


@pytest.mark.parametrize("method", ["remove_user", "clear_permissions", "remove_virtual_host"])
def test_removal_for_a_missing_user_or_virtual_host_is_an_error(broker: Broker, method: str) -> None:
    broker.admin.add_user("orders", "p")
    broker.admin.add_virtual_host("orders")
    with pytest.raises(BrokerError, match=r"there is no .* 'order'; did you mean 'orders'"):
        getattr(broker.admin, method)("order")


def test_memory_alarm_notifies_the_publisher_and_stops_reading_its_connection(broker: Broker) -> None:
    told: list[str] = []
    connection = connect(broker)
    connection.add_on_connection_blocked_callback(lambda _, method: told.append(method.method.reason))
    connection.add_on_connection_unblocked_callback(lambda _, method: told.append("over"))
    channel = connection.channel()
    channel.queue_declare("q")
    alarm = broker.faults.memory_alarm()
    channel.basic_publish("", "q", b"held back")
    broker._reader.wait_for(lambda state: not next(iter(state.connections)).reading)
    connection.process_data_events(time_limit=0.05)
    assert told == ["low on memory"]
    assert broker.queue("q").ready == 0
    alarm.remove()
    broker.queue("q").wait_for(ready=1)
    connection.process_data_events(time_limit=0.05)
    assert told == ["low on memory", "over"]
    connection.close()


# --- definitions -----------------------------------------------------------------------------------------


DEFINITIONS = {
    "rabbit_version": "4.2.1",
    "users": [
        {"name": "app", "password": "app", "tags": []},
        {
            "name": "hashed",
            "hashing_algorithm": "rabbit_password_hashing_sha256",
            # Salt 01020304 and the password "secret".
            "password_hash": "AQIDBDB9kM21iEUzN1lZ+6VReCsdNqS0sERdAQTcY6Xs3PMz",
            "tags": ["administrator"],
        },
    ],
    "vhosts": [{"name": "/"}, {"name": "shop"}],
    "permissions": [
        {"user": "app", "vhost": "shop", "configure": "^$", "write": ".*", "read": ".*"},
        {"user": "hashed", "vhost": "shop", "configure": ".*", "write": ".*", "read": ".*"},
    ],
    "exchanges": [{"name": "events", "vhost": "shop", "type": "topic", "durable": True, "arguments": {}}],
    "queues": [{"name": "orders", "vhost": "shop", "durable": True, "auto_delete": False, "arguments": {}}],
    "bindings": [
        {
            "source": "events",
            "vhost": "shop",
            "destination": "orders",
            "destination_type": "queue",
            "routing_key": "order.#",
            "arguments": {},
        }
    ],
}


def test_loaded_definitions_take_effect_and_are_exported_again(tmp_path: pytest.TempPathFactory) -> None:
    path = tmp_path / "definitions.json"  # type: ignore[operator]
    path.write_text(json.dumps(DEFINITIONS))
    with Broker(definitions=path) as broker:
        credentials = pika.PlainCredentials("app", "app")
        with connect(broker, virtual_host="shop", credentials=credentials) as connection:
            connection.channel().basic_publish("events", "order.placed", b"x")
            broker.queue("orders", virtual_host="shop").wait_for(ready=1)
        dumped = broker.definitions()
    assert [queue["name"] for queue in dumped["queues"]] == ["orders"]
    with Broker(definitions=dumped) as again:
        view = again.exchange("events", virtual_host="shop")
        assert [binding.routing_key for binding in view.bindings] == ["order.#"]
        assert again.definitions() == dumped


def test_hashed_passwords_are_checked() -> None:
    with Broker(definitions=DEFINITIONS) as broker:
        good = pika.PlainCredentials("hashed", "secret")
        connect(broker, virtual_host="shop", credentials=good).close()
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            connect(broker, virtual_host="shop", credentials=pika.PlainCredentials("hashed", "wrong"))


def test_definitions_that_contradict_existing_entities_are_refused(broker: Broker) -> None:
    broker.load_definitions({"queues": [{"name": "q", "durable": True}]})
    with pytest.raises(DefinitionsError, match="inequivalent arg 'durable'"):
        broker.load_definitions({"queues": [{"name": "q", "durable": False}]})


def test_unavailable_url_tls_and_trace_are_errors_with_a_remedy() -> None:
    broker = Broker(trace=0)
    with pytest.raises(BrokerError, match="the broker is not started"):
        _ = broker.url
    with pytest.raises(BrokerError, match="Broker\\(tls=True\\)"):
        _ = broker.tls
    with pytest.raises(BrokerError, match="trace is off"):
        _ = broker.trace


@pytest.mark.parametrize("wrong", ["x", 1.5, -1, None, True])
@pytest.mark.parametrize("name", ["trace", "history"])
def test_invalid_trace_or_history_size_is_refused(name: str, wrong: Any) -> None:
    with pytest.raises(BrokerError, match=f"{name} must be a number of entries to keep"):
        Broker(**{name: wrong})


def test_broker_repr_contains_no_password() -> None:
    with Broker(users={"bob": "hunter2"}) as broker:
        assert repr(broker) == f"<Broker on 127.0.0.1:{broker.port} connections=0>"


def test_pika_works_with_the_spec_personality() -> None:
    with Broker(personality="spec") as broker, connect(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q")
        channel.basic_publish("", "q", b"x")
        assert channel.basic_get("q")[2] == b"x"


def test_wait_timeout_shows_predicate_broker_state_and_latest_events(broker: Broker) -> None:
    wanted = 2
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("orders")
        with pytest.raises(WaitTimeout) as failure:
            broker.wait_for(lambda: broker.queue("orders").ready == wanted, timeout=0.01)
        with pytest.raises(WaitTimeout) as same:
            asyncio.run(broker.wait_for.aio(lambda: broker.queue("orders").ready == wanted, timeout=0.01))
    lines = str(failure.value).splitlines()
    assert lines[:3] == [
        'waited 0.01 s for lambda: broker.queue("orders").ready == wanted, which returned False',
        '    broker.queue("orders").ready  0',
        "    broker.queue(\"orders\")        <queue 'orders' ready=0 unacked=0 consumers=0>",
    ]
    held = lines.index("the broker holds:")
    assert lines[held + 1] == "  <queue 'orders' ready=0 unacked=0 consumers=0>"
    assert lines[held + 2].startswith("  <connection '127.0.0.1:")
    assert lines[held + 3] == "the latest events of the broker:"
    assert "queue.declare queue='orders'" in lines[-3]
    assert str(same.value).splitlines() == lines


@rows(
    "wait",
    lambda broker: broker.queue("q").wait_for(ready=1, timeout=0.01),
    lambda broker: broker.queue("q").wait_until_consumed(timeout=0.01),
    lambda broker: broker.wait_until_idle(timeout=0.01),
    lambda broker: broker.admin.add_service("s", print).wait(timeout=0.01),
    lambda broker: broker.faults.on("basic.ack").drop().wait(timeout=0.01),
)
def test_every_wait_raises_wait_timeout_with_broker_state_and_events(
    broker: Broker, wait: Callable[[Broker], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker._engine, "quiet", lambda: False)
    broker._reader.read(lambda state: state.virtual_hosts["/"].queues.declare("orders"))
    with pytest.raises(WaitTimeout) as failure:
        wait(broker)
    assert "\nthe broker holds:\n  <queue 'orders' ready=0" in str(failure.value)
    assert "\nthe latest events of the broker:\n" in str(failure.value)


def test_firehose_copies_messages_published_by_the_test(broker: Broker) -> None:
    broker.admin.set_firehose()
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("trace", exclusive=True)
        channel.queue_bind("trace", "amq.rabbitmq.trace", "publish.#")
        broker.publish(b"m", exchange="amq.topic", routing_key="a.b")
        method, seen, body = channel.basic_get("trace", auto_ack=True)
    assert (method.routing_key, body) == ("publish.amq.topic", b"m")
    assert [seen.headers[name] for name in ("connection", "channel", "user")] == [
        "Broker.publish",
        0,
        "rmq-internal",
    ]


def test_the_firehose_is_switched_by_true_and_false_only() -> None:
    with Broker(virtual_hosts=["shop"]) as broker:
        for wrong in ("shop", "off", None):
            with pytest.raises(BrokerError, match=r"set_firehose\(on=.*\): on must be True or False"):
                broker.admin.set_firehose(wrong)  # type: ignore[arg-type]
