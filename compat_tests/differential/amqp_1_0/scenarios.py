"""The scenarios: each is a function of a play, on which it opens peers; the transcript is what they note."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from compat_tests.differential.amqp_1_0.peers import Peer
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, filters, message, section
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import PROTOCOL_HEADER, SASL_HEADER
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Byte,
    Char,
    Described,
    Float,
    Int,
    Milliseconds,
    Short,
    Symbol,
    UByte,
    UInt,
    ULong,
    UShort,
)


class Play:
    """One scenario on one broker. `queue` names a queue that `declare` makes."""

    def __init__(self, connect: Callable[[], Any], name: str) -> None:
        self.lines: list[str] = []
        self.peers: list[Peer] = []
        self.prefix = f"d-{name}"
        self._connect = connect
        self._made: list[str] = []
        self._manager: Peer | None = None

    def peer(self, name: str = "") -> Peer:
        peer = Peer(self._connect(), self.lines, name)
        self.peers.append(peer)
        return peer

    @property
    def manager(self) -> Peer:
        if self._manager is None:
            self._manager = self.peer("manager").session().managed()
        return self._manager

    def declare(self, kind: str = "classic", suffix: str = "q", **arguments: Any) -> str:
        """Declare a queue; returns its address."""
        name = f"{self.prefix}-{suffix}"
        said = {name.replace("_", "-"): value for name, value in arguments.items()}
        body = {"durable": True, "arguments": {"x-queue-type": kind, **said}}
        self.manager.ask("DELETE", f"/queues/{name}")
        status, answer = self.manager.ask("PUT", f"/queues/{name}", body)
        assert status == "201", answer
        self._made.append(f"/queues/{name}")
        return f"/queues/{name}"

    def exchange(self, kind: str, suffix: str = "x", **options: Any) -> str:
        name = f"{self.prefix}-{suffix}"
        self.manager.ask("DELETE", f"/exchanges/{name}")
        status, answer = self.manager.ask("PUT", f"/exchanges/{name}", {"type": kind, **options})
        assert status == "204", answer
        self._made.append(f"/exchanges/{name}")
        return name

    def bind(self, exchange: str, queue: str, key: str, **arguments: Any) -> None:
        body = {
            "source": exchange,
            "destination_queue": queue.removeprefix("/queues/"),
            "binding_key": key,
            "arguments": {name.replace("_", "-"): value for name, value in arguments.items()},
        }
        status, answer = self.manager.ask("POST", "/bindings", body)
        assert status == "204", answer

    def count(self, queue: str) -> None:
        """Note how many messages a queue has ready."""
        _, said = self.manager.ask("GET", queue)
        self.lines.append(f"{queue} has {said['message_count']} {said['consumer_count']}")

    def end(self) -> None:
        for path in self._made:
            self.manager.ask("DELETE", path)
        for peer in self.peers:
            peer.transport.close()


SCENARIOS: dict[str, Callable[[Play], None]] = {}


def scenario(function: Callable[[Play], None]) -> Callable[[Play], None]:
    SCENARIOS[function.__name__] = function
    return function


def _with(function: Callable[[Play, Any], None], value: Any, play: Play) -> None:
    function(play, value)


def each(**cases: Any) -> Callable[[Callable[[Play, Any], None]], None]:
    """A scenario for each value."""

    def declared(function: Callable[[Play, Any], None]) -> None:
        for name, value in cases.items():
            SCENARIOS[f"{function.__name__}-{name}"] = partial(_with, function, value)

    return declared


KINDS = {"classic": "classic", "quorum": "quorum", "stream": "stream"}
QUEUES = {"classic": "classic", "quorum": "quorum"}

# --- connection ---------------------------------------------------------------------------------------------


@scenario
def opening(play: Play) -> None:
    play.peer().open().note()


@each(
    limits={"max_frame_size": 1000, "channel_max": 5, "idle_time_out": 5000},
    host={"hostname": "vhost:/"},
    other_host={"hostname": "example.org"},
    no_limit={"channel_max": 65535},
)
def open_fields(play: Play, fields: dict[str, Any]) -> None:
    play.peer().open(**fields).note()


@each(amqp=PROTOCOL_HEADER, tls=b"AMQP\2\1\0\0", minor=b"AMQP\3\1\1\0")
def headers(play: Play, octets: bytes) -> None:
    peer = play.peer()
    peer.raw(octets)
    peer.note()


@scenario
def mechanisms(play: Play) -> None:
    peer = play.peer()
    peer.raw(SASL_HEADER)
    names = [body for _, body, _ in peer.frames() if isinstance(body, c.SaslMechanisms)]
    play.lines.append(str(sorted(names[0].sasl_server_mechanisms)))


@scenario
def anonymous(play: Play) -> None:
    peer = play.peer()
    peer.raw(SASL_HEADER)
    peer.send(c.SaslInit(mechanism=Symbol("ANONYMOUS"), initial_response=b"x"))
    peer.note()


@scenario
def amqplain(play: Play) -> None:
    peer = play.peer()
    peer.raw(SASL_HEADER)
    said = b"\x05LOGINS\0\0\0\x05guest\x08PASSWORDS\0\0\0\x05guest"
    peer.send(c.SaslInit(mechanism=Symbol("AMQPLAIN"), initial_response=said))
    peer.note()


@scenario
def closing(play: Play) -> None:
    peer = play.peer().session()
    peer.send(c.Close())
    peer.note()


@scenario
def large_channel(play: Play) -> None:
    peer = play.peer().session()
    peer.begin(64)
    peer.note()


@scenario
def large_frame(play: Play) -> None:
    peer = play.peer().session()
    peer.sender(play.declare())
    peer.transfer(payload=message(b"x" * 140000))
    peer.note()


@scenario
def frame_without_session(play: Play) -> None:
    peer = play.peer().session()
    peer.send(c.Detach(handle=0), 7)
    peer.note()


@scenario
def second_open(play: Play) -> None:
    peer = play.peer().session()
    peer.send(c.Open(container_id="again"))
    peer.note()


# --- sessions -----------------------------------------------------------------------------------------------


@each(plain={}, handles={"handle_max": 7}, window={"incoming_window": 1}, id={"next_outgoing_id": 77})
def begin(play: Play, fields: dict[str, Any]) -> None:
    peer = play.peer().open()
    peer.wait_for(c.Open)
    peer.begin(3, **fields)
    peer.note()


@scenario
def second_begin(play: Play) -> None:
    peer = play.peer().session()
    peer.begin()
    peer.note()


@scenario
def end(play: Play) -> None:
    peer = play.peer().session()
    peer.send(c.End())
    peer.note()
    peer.begin()
    peer.note()


@scenario
def echo_without_handle(play: Play) -> None:
    peer = play.peer().session()
    peer.flow(echo=True)
    peer.note()


@scenario
def flow_ahead(play: Play) -> None:
    peer = play.peer().session()
    peer.flow(next_incoming_id=5)
    peer.note()


@scenario
def large_handle(play: Play) -> None:
    peer = play.peer().session()
    peer.attach(SENDER, play.declare(), 256)
    peer.note()


@scenario
def handle_in_use(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(queue, 3)
    peer.attach(SENDER, queue, 3, name="other")
    peer.note()


@each(flow=c.Flow(incoming_window=10, next_outgoing_id=0, outgoing_window=10, handle=5, link_credit=1))
def unattached(play: Play, body: c.Composite) -> None:
    peer = play.peer().session()
    peer.send(body)
    peer.note()


@scenario
def unattached_transfer(play: Play) -> None:
    peer = play.peer().session()
    peer.transfer(3)
    peer.note()


@scenario
def unattached_detach(play: Play) -> None:
    peer = play.peer().session()
    peer.send(c.Detach(handle=3, closed=True))
    peer.note()


@scenario
def client_window(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().open()
    peer.begin(incoming_window=2)
    peer.wait_for(c.Begin)
    peer.sender(queue, 0)
    for _ in range(5):
        peer.transfer(0)
    peer.note()
    peer.attach(RECEIVER, queue, 1)
    peer.note()
    peer.flow(1, link_credit=10, incoming_window=2)
    peer.note("two")
    peer.flow(next_incoming_id=2, incoming_window=1)
    peer.note("one more")


@scenario
def window_is_granted_again(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(queue, 0)
    for _ in range(210):
        peer.transfer(0, settled=True)
    peer.note()


# --- links --------------------------------------------------------------------------------------------------


@each(
    missing="/queues/none",
    missing_exchange="/exchanges/none",
    missing_exchange_key="/exchanges/none/k",
    no_exchange="/exchanges//k",
    default="/exchanges/amq.default/k",
    no_queue="/queues/",
    slash="/queues/a/b",
    three="/exchanges/a/b/c",
    key="/exchanges/amq.topic/a.b",
    plain_exchange="/exchanges/amq.fanout",
    internal="/exchanges/amq.rabbitmq.trace/x",
    anonymous=None,
)
def targets(play: Play, address: str | None) -> None:
    peer = play.peer().session()
    peer.attach(SENDER, address)
    peer.note()


@each(
    missing="/queues/none",
    no_queue="/queues/",
    slash="/queues/a/b",
    none=None,
    exchange="/exchanges/amq.topic/a",
)
def sources(play: Play, address: str | None) -> None:
    peer = play.peer().session()
    peer.attach(RECEIVER, address)
    peer.note()


@each(**KINDS)
def attach_receiver(play: Play, kind: str) -> None:
    queue = play.declare(kind)
    peer = play.peer().session()
    peer.attach(RECEIVER, queue)
    peer.note()
    play.count(queue)


@each(unsettled=0, settled=1, mixed=2)
def attach_modes(play: Play, mode: int) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.attach(RECEIVER, queue, 0, snd_settle_mode=mode)
    peer.attach(SENDER, queue, 1, snd_settle_mode=mode)
    peer.note()


@each(
    recovery={"unsettled": {b"1": None}},
    incomplete={"incomplete_unsettled": True},
    second={"rcv_settle_mode": 1},
    second_settled={"rcv_settle_mode": 1, "snd_settle_mode": 1},
    outcomes={"terminus": {"outcomes": (Symbol("amqp:accepted:list"),)}},
    bad_outcomes={"terminus": {"outcomes": (Symbol("amqp:nope:list"),)}},
    size={"max_message_size": 5000},
    capabilities={"desired_capabilities": (Symbol("x"),)},
    filters={"terminus": {"filter": {Symbol("f"): Described(Symbol("f"), "x")}}},
    durable={"terminus": {"durable": 2, "expiry_policy": Symbol("never"), "timeout": 5}},
    copy={"terminus": {"distribution_mode": Symbol("copy")}},
)
def attach_fields(play: Play, fields: dict[str, Any]) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.attach(RECEIVER, queue, **fields)
    peer.note()


@each(
    recovery={"unsettled": {b"1": None}},
    second={"rcv_settle_mode": 1},
    coordinator={"target": c.Coordinator()},
    durable={"terminus": {"durable": 1}},
    no_count={"initial_delivery_count": 9},
)
def attach_sender_fields(play: Play, fields: dict[str, Any]) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.attach(SENDER, queue, **fields)
    peer.note()


@scenario
def no_source(play: Play) -> None:
    peer = play.peer().session()
    peer.attach(RECEIVER, "/queues/x", source=None)
    peer.note()


@scenario
def detach(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(queue, 0)
    peer.receiver(queue, 1)
    peer.send(c.Detach(handle=0, closed=True))
    peer.send(c.Detach(handle=1))
    peer.note()
    play.count(queue)


@scenario
def exclusive_queue(play: Play) -> None:
    name = f"{play.prefix}-ex"
    owner = play.peer("owner").session().managed()
    owner.ask("PUT", f"/queues/{name}", {"exclusive": True, "durable": False})
    peer = play.peer().session()
    peer.attach(RECEIVER, f"/queues/{name}")
    peer.note()


@scenario
def flow_after_refusal(play: Play) -> None:
    peer = play.peer().session()
    peer.attach(RECEIVER, "/queues/none")
    peer.flow(0, link_credit=1)
    peer.note()


@each(**QUEUES)
def queue_deleted(play: Play, kind: str) -> None:
    queue = play.declare(kind)
    peer = play.peer().session()
    peer.receiver(queue, 0, 5)
    peer.sender(queue, 1)
    play.manager.ask("DELETE", queue)
    peer.note("deleted")
    peer.transfer(1)
    peer.note("sent")


@scenario
def exchange_deleted(play: Play) -> None:
    name = play.exchange("direct")
    peer = play.peer().session()
    peer.sender(f"/exchanges/{name}/k", 1)
    play.manager.ask("DELETE", f"/exchanges/{name}")
    peer.transfer(1)
    peer.note("sent")


# --- publishing ---------------------------------------------------------------------------------------------


@each(**KINDS)
def publish(play: Play, kind: str) -> None:
    queue = play.declare(kind)
    peer = play.peer().session()
    peer.sender(queue)
    for _ in range(3):
        peer.transfer()
    peer.note()
    play.count(queue)


@each(unrouted="/exchanges/amq.direct/nothing", fanout="/exchanges/amq.fanout")
def unroutable(play: Play, address: str) -> None:
    peer = play.peer().session()
    peer.sender(address)
    peer.transfer()
    peer.note()
    peer.transfer(settled=True)
    peer.note("settled")


@each(**QUEUES)
def refused(play: Play, kind: str) -> None:
    queue = play.declare(kind, x_max_length=1, x_overflow="reject-publish")
    peer = play.peer().session()
    peer.sender(queue)
    for _ in range(4):
        peer.transfer()
        peer.note()


@scenario
def several_transfers(play: Play) -> None:
    queue = play.declare()
    octets = message(b"abcdef" * 10)
    peer = play.peer().session()
    peer.sender(queue)
    peer.transfer(payload=octets[:20], more=True)
    peer.send(c.Transfer(handle=0, more=True), payload=octets[20:30])
    peer.send(c.Transfer(handle=0), payload=octets[30:])
    peer.note()
    peer.receiver(queue, 1, 5)
    peer.note()


@scenario
def other_delivery_id(play: Play) -> None:
    peer = play.peer().session()
    peer.sender(play.declare())
    peer.transfer(payload=message()[:5], more=True)
    peer.send(c.Transfer(handle=0, delivery_id=9), payload=message()[5:])
    peer.note()


@each(settled=(1, False), unsettled=(0, True), mixed=(2, True))
def mode_against_flag(play: Play, value: tuple[int, bool]) -> None:
    mode, settled = value
    peer = play.peer().session()
    peer.sender(play.declare(), snd_settle_mode=mode)
    peer.transfer(settled=settled)
    peer.note()


@scenario
def beyond_credit(play: Play) -> None:
    peer = play.peer().session()
    peer.sender(play.declare())
    for _ in range(90):
        peer.transfer(settled=True)
    peer.note()


@each(
    no_body=message(None, properties=c.Properties(subject="s")),
    nothing=b"",
    garbage=b"\0\x53\x10\x45",
    annotation=message(annotations={Symbol("k"): 1}),
    number_annotation=message(annotations={ULong(1): 1}),
    string_annotation=message(annotations={"x-a": 1}),
)
def unreadable(play: Play, octets: bytes) -> None:
    peer = play.peer().session()
    peer.sender(play.declare())
    peer.transfer(payload=octets)
    peer.note()


@each(
    missing=None,
    bad="nonsense",
    no_exchange="/exchanges/none/k",
    no_queue="/queues/none",
    unrouted="/exchanges/amq.direct/nothing",
    internal="/exchanges/amq.rabbitmq.trace/x",
)
def anonymous_terminus(play: Play, to: str | None) -> None:
    peer = play.peer().session()
    peer.sender(None)
    peer.transfer(payload=message(properties=c.Properties(to=to)))
    peer.note()
    peer.transfer(payload=message(properties=c.Properties(to=to)), settled=True)
    peer.note("settled")


@scenario
def anonymous_routed(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(None)
    peer.transfer(payload=message(properties=c.Properties(to=queue)))
    peer.note()
    play.count(queue)


@each(same=b"guest", other=b"other")
def user_id(play: Play, user: bytes) -> None:
    peer = play.peer().session()
    peer.sender(play.declare())
    peer.transfer(payload=message(properties=c.Properties(user_id=user)))
    peer.note()


@scenario
def copies(play: Play) -> None:
    first, second = play.declare(), play.declare(suffix="r")
    name = play.exchange("direct")
    play.bind(name, first, "a")
    play.bind(name, second, "b")
    peer = play.peer().session()
    peer.sender(f"/exchanges/{name}/a")
    peer.transfer(payload=message(annotations={Symbol("x-cc"): ["b"]}))
    peer.note()
    peer.receiver(first, 1, 5)
    peer.receiver(second, 2, 5)
    peer.note()


@each(text="b", numbers=[1])
def bad_copies(play: Play, value: Any) -> None:
    peer = play.peer().session()
    peer.sender(play.declare())
    peer.transfer(payload=message(annotations={Symbol("x-cc"): value}))
    peer.note()


@scenario
def two_queues(play: Play) -> None:
    first = play.declare()
    second = play.declare(suffix="r", x_max_length=0, x_overflow="reject-publish")
    name = play.exchange("fanout")
    play.bind(name, first, "")
    play.bind(name, second, "")
    peer = play.peer().session()
    peer.sender(f"/exchanges/{name}")
    peer.transfer()
    peer.note()
    play.count(first)


# --- messages -----------------------------------------------------------------------------------------------

BODIES = {
    "data": message(b"abc"),
    "empty_data": message(b""),
    "two_data": section(0x75, b"one") + section(0x75, b"two"),
    "value": message("text"),
    "map": message({"a": 1, Symbol("b"): [UInt(5), None]}),
    "null": section(0x77, None),
    "sequence": section(0x76, [1, "a"]) + section(0x76, []),
    "footer": message(b"x", footer={Symbol("x-f"): 1}),
    "delivery_annotations": message(b"x", delivery_annotations={Symbol("x-d"): 1}),
    "header": message(b"x", header=c.Header(durable=True, priority=7, ttl=100000)),
    "transient": message(b"x", header=c.Header(durable=False)),
    "counted": message(b"x", header=c.Header(delivery_count=5, first_acquirer=True)),
    "annotations": message(b"x", annotations={Symbol("x-a"): 1, Symbol("x-opt-b"): "t"}),
    "own_names": message(b"x", annotations={Symbol("x-exchange"): "e", Symbol("x-routing-key"): "k"}),
    "properties": message(
        b"x",
        properties=c.Properties(
            message_id="m",
            user_id=b"guest",
            to="t",
            subject="s",
            reply_to="r",
            correlation_id=ULong(5),
            content_type=Symbol("a/b"),
            content_encoding=Symbol("e"),
            absolute_expiry_time=1000,
            creation_time=2000,
            group_id="g",
            group_sequence=3,
            reply_to_group_id="rg",
        ),
    ),
    "application": message(
        b"x",
        application={
            "b": True,
            "ub": UByte(1),
            "us": UShort(2),
            "ui": UInt(3),
            "ul": ULong(4),
            "by": Byte(-1),
            "sh": Short(-2),
            "in": Int(-3),
            "lo": -4,
            "fl": Float(1.5),
            "do": 2.5,
            "ch": Char("c"),
            "ts": Milliseconds(1234),
            "uu": UUID(int=5),
            "bi": b"\xff",
            "st": "s",
            "sy": Symbol("y"),
            "nu": None,
        },
    ),
}


@each(**{f"{name}_{kind}": (kind, octets) for kind in KINDS for name, octets in BODIES.items()})
def passes(play: Play, value: tuple[str, bytes]) -> None:
    """A message through a queue."""
    kind, octets = value
    queue = play.declare(kind)
    peer = play.peer().session()
    peer.sender(queue)
    peer.transfer(payload=octets)
    peer.note()
    stream = {"terminus": {"filter": filters(offset_spec="first")}} if kind == "stream" else {}
    peer.receiver(queue, 1, 5, **stream)
    peer.note()


# --- receiving ----------------------------------------------------------------------------------------------


def filled(play: Play, kind: str, count: int, **arguments: Any) -> tuple[str, Peer]:
    """A queue with messages, and a peer with a session."""
    queue = play.declare(kind, **arguments)
    peer = play.peer().session()
    peer.sender(queue, 0)
    for number in range(count):
        peer.transfer(payload=message(str(number).encode()))
    peer.frames()
    return queue, peer


@each(**QUEUES)
def credit(play: Play, kind: str) -> None:
    queue, peer = filled(play, kind, 6)
    peer.receiver(queue, 1)
    peer.note("none")
    peer.flow(1, link_credit=2)
    peer.note("two")
    peer.settle(c.Accepted(), 0, 1)
    peer.note("settled")
    peer.flow(1, link_credit=2, delivery_count=play_count(2, peer))
    peer.note("two more")
    peer.flow(1, link_credit=0, delivery_count=play_count(4, peer))
    peer.note("no more")


def play_count(number: int, peer: Peer) -> int:
    """The delivery count after so many deliveries; peers learn the first from the attach."""
    return number


@each(**QUEUES)
def drain(play: Play, kind: str) -> None:
    queue, peer = filled(play, kind, 2)
    peer.receiver(queue, 1)
    peer.flow(1, link_credit=5, drain=True)
    peer.note("drained")
    peer.flow(1, link_credit=5, drain=True, echo=True)
    peer.note("again")


@each(**QUEUES)
def echo(play: Play, kind: str) -> None:
    queue, peer = filled(play, kind, 3)
    peer.receiver(queue, 1)
    peer.flow(1, link_credit=1, echo=True)
    peer.note()
    peer.flow(1, link_credit=0, echo=True)
    peer.note()


OUTCOMES = {
    "accepted": c.Accepted(),
    "rejected": c.Rejected(),
    "released": c.Released(),
    "modified": c.Modified(),
    "failed": c.Modified(delivery_failed=True),
    "undeliverable": c.Modified(undeliverable_here=True),
    "failed_undeliverable": c.Modified(delivery_failed=True, undeliverable_here=True),
    "annotated": c.Modified(delivery_failed=True, message_annotations={Symbol("x-a"): 1}),
    "received": c.Received(section_number=0, section_offset=0),
    "none": None,
}


@each(**{f"{name}_{kind}": (kind, name) for kind in QUEUES for name in OUTCOMES})
def outcomes(play: Play, value: tuple[str, str]) -> None:
    kind, name = value
    queue, peer = filled(play, kind, 2)
    peer.receiver(queue, 1, 1)
    peer.note()
    peer.settle(OUTCOMES[name], 0)
    peer.note("settled")
    play.count(queue)
    other = play.peer("other").session()
    other.receiver(queue, 0, 5)
    other.note()


@each(
    **{
        f"{name}_{kind}": (kind, name)
        for kind in QUEUES
        for name in ("rejected", "undeliverable", "failed_undeliverable")
    }
)
def dead_letters(play: Play, value: tuple[str, str]) -> None:
    kind, name = value
    dead = play.declare(suffix="dead")
    exchange = ""
    queue, peer = filled(
        play,
        kind,
        1,
        x_dead_letter_exchange=exchange,
        x_dead_letter_routing_key=dead.removeprefix("/queues/"),
    )
    peer.receiver(queue, 1, 1)
    peer.frames()
    peer.settle(OUTCOMES[name], 0)
    peer.note("settled")
    peer.receiver(dead, 2, 5)
    found = peer.frames()
    for _, body, payload in found:
        if isinstance(body, c.Transfer):
            play.lines.append(str(sorted(names_of(payload))))


def names_of(payload: bytes) -> list[str]:
    from compat_tests.scripted.amqp_1_0 import sections

    said = sections(payload)
    keys = [f"{key}={said['annotations'][key]!r}" for key in said["annotations"] if key != "x-opt-deaths"]
    deaths = [
        f"{key}={type(value).__name__} {value if 'time' not in key else ''}"
        for death in said["annotations"].get("x-opt-deaths", ())
        for key, value in death.items()
    ]
    return [*keys, *deaths, repr(said.get("header"))]


@each(range=(0, 2), reversed=(2, 0), beyond=(0, 50), unknown=(70, 80))
def ranges(play: Play, value: tuple[int, int]) -> None:
    queue, peer = filled(play, "classic", 4)
    peer.receiver(queue, 1, 4)
    peer.frames()
    peer.settle(c.Accepted(), *value, settled=False)
    peer.note()


@each(detach=c.Detach(handle=1, closed=True), end=c.End(), close=c.Close())
def lost(play: Play, body: c.Composite) -> None:
    for kind in QUEUES:
        queue = play.declare(kind, suffix=kind)
        peer = play.peer(kind).session()
        peer.sender(queue, 0)
        peer.transfer()
        peer.frames()
        peer.receiver(queue, 1, 1)
        peer.frames()
        peer.send(body)
        peer.note()
        other = play.peer("other").session()
        other.receiver(queue, 0, 5)
        other.note()


@scenario
def settled_deliveries(play: Play) -> None:
    queue, peer = filled(play, "classic", 2)
    peer.receiver(queue, 1, 5, snd_settle_mode=1)
    peer.note()
    play.count(queue)


@scenario
def split_deliveries(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session(max_frame_size=512)
    peer.sender(queue, 0)
    octets = message(b"x" * 1000)
    peer.transfer(payload=octets[:400], more=True)
    peer.send(c.Transfer(handle=0, more=True), payload=octets[400:800])
    peer.send(c.Transfer(handle=0), payload=octets[800:])
    peer.frames()
    peer.receiver(queue, 1, 5)
    found = peer.frames()
    play.lines += [f"{body!r} {len(payload)}" for _, body, payload in found if isinstance(body, c.Transfer)]


@scenario
def too_large_for_the_client(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(queue, 0)
    peer.transfer(payload=message(b"x" * 500))
    peer.frames()
    peer.receiver(queue, 1, 5, max_message_size=100)
    peer.note()


@scenario
def tags(play: Play) -> None:
    for kind in QUEUES:
        queue = play.declare(kind, suffix=kind)
        peer = play.peer(kind).session()
        peer.sender(queue, 0)
        peer.transfer().transfer()
        peer.frames()
        peer.receiver(queue, 1, 10)
        peer.note()
        peer.settle(c.Released(), 0)
        peer.note()
        peer.receiver(queue, 2, 10)
        peer.settle(c.Accepted(), 2)
        peer.transfer()
        peer.note()


@each(first="first", last="last", next="next", number=ULong(1), bare=UInt(2))
def offsets(play: Play, value: Any) -> None:
    queue, peer = filled(play, "stream", 3)
    peer.attach(RECEIVER, queue, 1, terminus={"filter": filters(offset_spec=value)})
    peer.flow(1, link_credit=10)
    peer.note()


@each(one="a", several=["a", "b"], none="z")
def stream_filters(play: Play, value: Any) -> None:
    queue = play.declare("stream")
    peer = play.peer().session()
    peer.sender(queue, 0)
    for name in ("a", "b", "c"):
        peer.transfer(payload=message(name.encode(), annotations={Symbol("x-stream-filter-value"): name}))
        peer.frames()
    peer.transfer(payload=message(b"unfiltered"))
    peer.frames()
    said = filters(offset_spec="first", filter=value, match_unfiltered=True)
    peer.attach(RECEIVER, queue, 1, terminus={"filter": said})
    peer.flow(1, link_credit=10)
    found = peer.note()
    assert found


@each(
    undescribed={Symbol("rabbitmq:stream-offset-spec"): "first"},
    unknown={Symbol("x"): Described(Symbol("x"), 1)},
)
def odd_filters(play: Play, value: Any) -> None:
    queue, peer = filled(play, "stream", 2)
    peer.attach(RECEIVER, queue, 1, terminus={"filter": value})
    peer.flow(1, link_credit=10)
    peer.note()


@scenario
def priorities(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.receiver(queue, 1, 5)
    peer.receiver(queue, 2, 5, properties={Symbol("rabbitmq:priority"): Int(5)})
    peer.sender(queue, 0)
    peer.transfer()
    peer.note()


# --- management ---------------------------------------------------------------------------------------------

REQUESTS: dict[str, tuple[str, str, Any]] = {
    "bad_property": ("PUT", "/queues/{}", {"nope": UInt(1)}),
    "empty_name": ("PUT", "/queues/", {}),
    "reserved": ("PUT", "/queues/amq.x", {}),
    "bad_argument": ("PUT", "/queues/{}", {"arguments": {"x-message-ttl": "a"}}),
    "quorum_transient": ("PUT", "/queues/{}", {"durable": False, "arguments": {"x-queue-type": "quorum"}}),
    "unknown_type": ("PUT", "/queues/{}", {"arguments": {"x-queue-type": "nope"}}),
    "newline": ("PUT", "/queues/a%0Ab", {}),
    "get_missing": ("GET", "/queues/none", None),
    "delete_missing": ("DELETE", "/queues/none", None),
    "purge_missing": ("DELETE", "/queues/none/messages", None),
    "unknown_exchange_type": ("PUT", "/exchanges/{}", {"type": "nope"}),
    "default_exchange": ("PUT", "/exchanges/amq.default", {}),
    "reserved_exchange": ("PUT", "/exchanges/amq.x", {}),
    "predeclared_exchange": ("PUT", "/exchanges/amq.direct", {"type": "direct"}),
    "delete_missing_exchange": ("DELETE", "/exchanges/none", None),
    "delete_predeclared": ("DELETE", "/exchanges/amq.direct", None),
    "delete_default": ("DELETE", "/exchanges/amq.default", None),
    "bind_missing": (
        "POST",
        "/bindings",
        {"source": "amq.direct", "destination_queue": "none", "binding_key": "k", "arguments": {}},
    ),
    "bind_no_exchange": (
        "POST",
        "/bindings",
        {"source": "none", "destination_exchange": "amq.direct", "binding_key": "k", "arguments": {}},
    ),
    "bind_default": (
        "POST",
        "/bindings",
        {"source": "", "destination_exchange": "amq.direct", "binding_key": "k", "arguments": {}},
    ),
    "get_bindings": ("GET", "/bindings?src=amq.direct&dste=amq.topic&key=k", None),
    "bad_binding": ("DELETE", "/bindings/x", None),
    "missing_binding": ("DELETE", "/bindings/src=amq.direct;dste=amq.topic;key=k;args=", None),
    "unknown": ("GET", "/nothing", None),
    "unknown_method": ("PATCH", "/queues/x", None),
    "no_field": ("POST", "/bindings", {"source": "amq.direct"}),
}


@each(**REQUESTS)
def management(play: Play, request: tuple[str, str, Any]) -> None:
    method, path, body = request
    peer = play.peer().session().managed()
    peer.request(method, path.format(play.prefix + "-m"), body)
    peer.note()
    peer.request("DELETE", f"/queues/{play.prefix}-m", None)
    peer.note()


@each(**KINDS)
def management_queue(play: Play, kind: str) -> None:
    peer = play.peer().session().managed()
    path = f"/queues/{play.prefix}-m"
    peer.ask("DELETE", path)
    for method, at, body in (
        ("PUT", path, {"durable": True, "arguments": {"x-queue-type": kind}}),
        ("PUT", path, {"durable": True, "arguments": {"x-queue-type": kind}}),
        ("PUT", path, {"durable": True, "auto_delete": True, "arguments": {"x-queue-type": kind}}),
        ("GET", path, None),
        ("DELETE", f"{path}/messages", None),
        ("DELETE", path, None),
    ):
        status, said = peer.ask(method, at, body)
        if isinstance(said, dict):
            said = {key: value for key, value in said.items() if key not in ("leader", "replicas")}
        play.lines.append(f"{method} {status} {said}")


@scenario
def management_bindings(play: Play) -> None:
    queue = play.declare()
    name = play.exchange("topic")
    play.bind(name, queue, "a.*")
    play.bind(name, queue, "b")
    play.bind(name, queue, "b")
    play.bind(name, queue, "c", k="v")
    short = queue.removeprefix("/queues/")
    for path in (
        f"/bindings?src={name}&dstq={short}&key=a.%2A",
        f"/bindings?src={name}&dstq={short}&key=b",
        f"/bindings?src={name}&dstq={short}&key=c",
    ):
        _, said = play.manager.ask("GET", path)
        play.lines += sorted(map(str, said))
    play.lines.append(str(play.manager.ask("DELETE", f"/bindings/src={name};dstq={short};key=b;args=")))
    _, said = play.manager.ask("GET", f"/bindings?src={name}&dstq={short}&key=b")
    play.lines.append(str(len(said)))


@scenario
def half_pair(play: Play) -> None:
    peer = play.peer().session()
    peer.attach(SENDER, "/management", 0, snd_settle_mode=1, properties={Symbol("paired"): True})
    peer.note()
    octets = c.Properties(message_id="1", subject="GET", to="/queues/x").encode() + section(0x77, None)
    peer.transfer(0, octets, settled=True)
    peer.note()
