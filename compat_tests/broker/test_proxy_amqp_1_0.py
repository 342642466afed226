"""`Proxy` in front of a broker for clients of AMQP 1.0: faults, trace, assertions and recordings.

With `FAKEAMQP_NODES`, URLs of RabbitMQ nodes, the same happens in front of each of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pika
import pytest

from fakeamqp import Broker, Proxy
from fakeamqp.trace import ModelEvent, load

proton = pytest.importorskip("proton")
utils = pytest.importorskip("proton.utils")

pytestmark = [pytest.mark.threads_only, pytest.mark.filterwarnings("ignore::ResourceWarning")]

# One process uses a node: all tests have a queue of the same name there.
NODES = [
    pytest.param(url, marks=pytest.mark.xdist_group(url))
    for url in os.environ.get("FAKEAMQP_NODES", "").split()
]


@pytest.fixture(params=["rabbitmq-4.3", "rabbitmq-4.0", *NODES])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A broker with an empty queue "q"."""

    def prepare(url: str) -> str:
        with pika.BlockingConnection(pika.URLParameters(url)) as connection:
            channel = connection.channel()
            channel.queue_delete("q")
            channel.queue_declare("q", durable=True)
        return url

    if request.param.startswith("amqp:"):
        yield prepare(request.param)
    else:
        with Broker(personality=request.param) as broker:
            yield prepare(broker.url)


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with Proxy(url) as proxy:
        yield proxy


@pytest.fixture
def connection(proxy: Proxy) -> Iterator[Any]:
    connection = utils.BlockingConnection(f"amqp://guest:guest@127.0.0.1:{proxy.port}", timeout=10)
    yield connection
    with suppress(proton.ProtonException):
        connection.close()


def left_in(url: str) -> list[bytes]:
    """The messages in the queue, which is empty then."""
    bodies = []
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        while (got := channel.basic_get("q", auto_ack=True))[0] is not None:
            bodies.append(got[2])
    return bodies


def message(body: bytes) -> Any:
    return proton.Message(body=body, inferred=True)


def body_of(receiver: Any) -> bytes:
    received = receiver.receive()  # Its body is a view of it.
    return bytes(received.body)


def test_published_messages_are_seen_by_assertions_and_trace(proxy: Proxy, connection: Any) -> None:
    large = b"x" * 200_000
    sender = connection.create_sender("/queues/q", name="out")
    sender.send(proton.Message(body=b"one", inferred=True, subject="s", properties={"n": 1}))
    sender.send(message(large))
    proxy.expect_published(routing_key="q", body=b"one", headers={"n": 1}, count=1)
    assert proxy.published[0].sections["properties"] == {"subject": "s"}
    assert proxy.published[1].body == large
    receiver = connection.create_receiver("/queues/q", name="in", credit=2)
    assert [body_of(receiver) for _ in range(2)] == [b"one", large]
    [view] = proxy.connections
    assert (view.protocol, view.user, view.virtual_host) == ("1-0", "guest", "/")
    assert [(each.name, each.role, each.queue) for each in view.channels[0].links] == [
        ("out", "sender", None),
        ("in", "receiver", "q"),
    ]
    assert view.channels[0].unacked == 2
    receiver.accept()
    receiver.accept()
    connection.close()
    proxy.wait_for(lambda: not proxy.connections)
    assert proxy.trace.findings() == ()
    timeline = proxy.trace.timeline()
    assert "transfer handle=0 delivery_id=0" in timeline and "state=accepted" in timeline
    events = [each.event for each in proxy.trace.events if isinstance(each, ModelEvent)]
    assert events == [*["published"] * 2, "consumer added", *["delivered"] * 2, *["acked"] * 2]


def test_messages_that_a_rule_takes_do_not_use_up_credit_or_window(
    url: str, proxy: Proxy, connection: Any
) -> None:
    sender = connection.create_sender("/queues/q")
    proxy.faults.on("transfer", queue="q", body=b"refused").nack()
    proxy.faults.on("transfer", body=b"returned").return_message()
    for _ in range(210):  # More than the broker grants of both.
        with pytest.raises(utils.SendException):
            sender.send(message(b"refused"))
        with pytest.raises(utils.SendException):
            sender.send(message(b"returned"))
    sender.send(message(b"there"))
    connection.close()
    assert left_in(url) == [b"there"]


def test_duplicate_reaches_the_broker_and_its_outcome_no_client(
    url: str, proxy: Proxy, connection: Any
) -> None:
    proxy.faults.on("transfer", body=b"twice").duplicate().once()
    sender = connection.create_sender("/queues/q")
    sender.send(message(b"twice"))
    sender.send(message(b"once"))
    connection.close()
    assert left_in(url) == [b"twice", b"twice", b"once"]


def test_deliveries_that_a_rule_takes_leave_no_gap_and_settle_their_own_message(
    url: str, proxy: Proxy, connection: Any
) -> None:
    sender = connection.create_sender("/queues/q")
    for body in (b"lost", b"late", b"twice", b"kept"):
        sender.send(message(body))
    faults = proxy.faults
    faults.on("transfer", direction="sent", queue="q", body=b"lost").drop().once()
    held = faults.on("transfer", direction="sent", body=b"late").hold().once()
    faults.on("transfer", direction="sent", body=b"twice").duplicate().once()
    receiver = connection.create_receiver("/queues/q", credit=4)
    assert [body_of(receiver) for _ in range(3)] == [b"twice", b"twice", b"kept"]
    held.release()
    assert body_of(receiver) == b"late"
    for outcome in ("accept", "release", "release", "accept"):
        getattr(receiver, outcome)()
    connection.close()
    assert sorted(left_in(url)) == [b"kept", b"lost"]


def test_rule_detaches_one_link_on_both_sides(url: str, proxy: Proxy, connection: Any) -> None:
    one, other = connection.create_sender("/queues/q"), connection.create_sender("/queues/q", name="other")
    proxy.faults.on("transfer", body=b"bad").detach("com.example:no", "never").once()
    with pytest.raises(utils.LinkDetached, match="never"):
        one.send(message(b"bad"))
    other.send(message(b"good"))
    connection.create_sender("/queues/q", name="third").send(message(b"too"))
    connection.close()
    assert left_in(url) == [b"good", b"too"]


def test_rule_refuses_an_attach(proxy: Proxy, connection: Any) -> None:
    proxy.faults.on("attach", queue="q").detach("amqp:not-found", "not here").once()
    with pytest.raises(utils.LinkDetached, match="not here"):
        connection.create_receiver("/queues/q")
    connection.create_sender("/queues/q").send(message(b"x"))


def test_rule_closes_the_connection_on_both_sides(url: str, proxy: Proxy, connection: Any) -> None:
    proxy.faults.on("attach").close_connection("amqp:connection:forced", "maintenance").once()
    with pytest.raises(proton.ConnectionException, match="maintenance"):
        connection.create_sender("/queues/q")
    proxy.wait_for(lambda: not proxy.connections)


def test_recording_has_the_frames_of_1_0(url: str, tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    with Proxy(url, record=path) as proxy:
        connection = utils.BlockingConnection(f"amqp://guest:guest@127.0.0.1:{proxy.port}", timeout=10)
        connection.create_sender("/queues/q").send(message(b"x"))
        connection.close()
    timeline = load(path).timeline()
    assert "transfer handle=0" in timeline and "guest\x00guest" not in timeline
    # As in the trace of a broker, the first header and its answer are no frames.
    headers = [line for line in timeline.splitlines() if "protocol-header" in line]
    assert [line.rpartition("protocol-header ")[2] for line in headers] == ["AMQP 1-0-0"] * 2


def test_broker_that_cannot_be_reached_ends_the_transport() -> None:
    with Proxy("amqp://127.0.0.1:1/%2F") as proxy:
        with pytest.raises(proton.ProtonException):
            utils.BlockingConnection(f"amqp://guest:guest@127.0.0.1:{proxy.port}", timeout=10)
        proxy.wait_for(lambda: "refused" in proxy.trace.timeline())


def test_rule_knows_the_queue_of_an_address_of_version_1() -> None:
    with Broker(personality="rabbitmq-4.0") as broker, Proxy(broker.url) as proxy:
        rule = proxy.faults.on("transfer", queue="old").nack().once()
        connection = utils.BlockingConnection(f"amqp://guest:guest@127.0.0.1:{proxy.port}", timeout=10)
        sender = connection.create_sender("old")
        with pytest.raises(utils.SendException):
            sender.send(message(b"x"))
        sender.send(message(b"y"))
        assert rule.hits == 1
        proxy.expect_published(routing_key="old", body=b"y", count=1)
        connection.close()
