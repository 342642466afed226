"""Scenarios of direct reply-to."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.peers import Peer
from compat_tests.differential.amqp_1_0.scenarios.dynamic_nodes import dynamic
from compat_tests.differential.amqp_1_0.scenarios.generated import same_names
from compat_tests.differential.amqp_1_0.scenarios.play import Play, each, scenario
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol, UInt

VOLATILE = (Symbol("rabbitmq:volatile-queue"),)


def volatile(peer: Peer, role: bool = RECEIVER, handle: int = 0, **fields: Any) -> str | None:
    """Attach for direct replies; returns the address of replies."""
    terminus = {
        "capabilities": VOLATILE,
        "expiry_policy": Symbol("link-detach"),
        "durable": UInt(0),
        "timeout": UInt(0),
        **fields.pop("terminus", {}),
    }
    return dynamic(peer, role, handle, **{"snd_settle_mode": 1, "terminus": terminus, **fields})


@each(
    plain={},
    no_durable={"terminus": {"durable": None}},
    durable={"terminus": {"durable": UInt(1)}},
    no_timeout={"terminus": {"timeout": None}},
    timeout={"terminus": {"timeout": UInt(1)}},
    no_policy={"terminus": {"expiry_policy": None}},
    other_policy={"terminus": {"expiry_policy": Symbol("session-end")}},
    unsettled={"snd_settle_mode": 0},
    mixed={"snd_settle_mode": 2},
    both={"terminus": {"capabilities": (Symbol("temporary-queue"), *VOLATILE)}},
    both_durable={"terminus": {"durable": UInt(1), "capabilities": (Symbol("temporary-queue"), *VOLATILE)}},
    address={"address": "/queues/x"},
    outcomes={"terminus": {"outcomes": (Symbol("amqp:accepted:list"),)}},
    filter={"terminus": {"filter": {Symbol("f"): "x"}}},
    target={"role": SENDER},
    priority={"properties": {Symbol("rabbitmq:priority"): 5}},
)
def reply_to_fields(play: Play, fields: dict[str, Any]) -> None:
    peer = play.peer().session()
    volatile(peer, **fields)
    same_names(play)


def asked(play: Play) -> tuple[Peer, str, Peer]:
    """A requester with its reply address, and a responder with an anonymous sender."""
    requester = play.peer("requester").session().managed()
    address = volatile(requester) or "/queues/d-none"
    responder = play.peer("responder").session()
    responder.sender(None, 1)
    return requester, address, responder


def granted(requester: Peer, handle: int = 0) -> None:
    """Grant credit, and wait until it is there."""
    requester.flow(handle, link_credit=5, echo=True)
    requester.frames()


def reply(body: bytes, address: str, **fields: Any) -> bytes:
    return message(body, properties=c.Properties(to=address, **fields))


@scenario
def reply_to_credit(play: Play) -> None:
    """Replies beyond the credit are lost."""
    requester, address, responder = asked(play)
    responder.transfer(1, reply(b"0", address))
    responder.note("no credit")
    requester.note("no credit")
    requester.flow(0, link_credit=2, echo=True)
    requester.note("credit")
    for body in (b"1", b"2", b"3"):
        responder.transfer(1, reply(body, address, correlation_id="c"))
    responder.note("replied")
    requester.note("replied")
    requester.flow(0, link_credit=2, delivery_count=2, echo=True)
    requester.wait_for(c.Flow)
    responder.transfer(1, reply(b"4", address), settled=True)
    requester.note("again")
    requester.flow(0, link_credit=5, delivery_count=3, drain=True)
    requester.note("drained")
    responder.transfer(1, reply(b"5", address))
    responder.note("drained")
    requester.note("lost")
    same_names(play)


@scenario
def reply_to_target(play: Play) -> None:
    """A link to the reply address, while the requester lives and after."""
    requester, address, responder = asked(play)
    granted(requester)
    responder.attach(SENDER, address, 2)
    responder.note("attached")
    responder.transfer(2)
    responder.note("replied")
    requester.note("replied")
    requester.send(c.Detach(handle=0, closed=True))
    requester.note("detached")
    responder.transfer(2)
    responder.transfer(1, reply(b"late", address))
    responder.note("late")
    responder.attach(SENDER, address, 3)
    responder.note("attached late")
    same_names(play)


@each(end=c.End(), close=c.Close(), lost=None)
def reply_to_ends(play: Play, body: c.Composite | None) -> None:
    requester, address, responder = asked(play)
    granted(requester)
    if body is None:
        requester.transport.drop()
    else:
        requester.send(body)
        requester.note("ended")
    responder.frames()
    responder.transfer(1, reply(b"late", address))
    responder.note("late")
    same_names(play)


@scenario
def reply_to_management(play: Play) -> None:
    """GET tells whether the requester lives."""
    requester, address, _ = asked(play)
    if address == "/queues/d-none":
        return
    name = address.removeprefix("/queues/")
    body = {"source": "amq.direct", "destination_queue": name, "binding_key": "k", "arguments": {}}
    for method, path, said in (
        ("GET", address, None),
        ("PUT", address, {"durable": True}),
        ("PUT", address, {"exclusive": False}),
        ("DELETE", f"{address}/messages", None),
        ("GET", address, None),
        ("DELETE", address, None),
        ("GET", address, None),
        ("POST", "/bindings", body),
        ("GET", f"/bindings?dstq={name}&src=amq.direct", None),
        ("GET", "/queues/amq.rabbitmq.reply-to", None),
        ("GET", "/queues/amq.rabbitmq.reply-to.a.b", None),
        ("PUT", "/queues/amq.rabbitmq.reply-to", {}),
    ):
        try:
            status, answer = play.manager.ask(method, path, said)
        except AssertionError:
            play.lines.append(f"{method} none")
            play._manager = None
            continue
        if isinstance(answer, dict):
            answer = sorted(answer.items())
        play.lines.append(f"{method} {status} {answer}")
    requester.send(c.Detach(handle=0, closed=True))
    requester.note("detached")
    play.lines.append(str(play.manager.ask("GET", address)))
    same_names(play)


@each(link="link", other="other", v1="v1")
def reply_to_consumed_by_others(play: Play, how: str) -> None:
    requester, address, responder = asked(play)
    peer = requester if how == "link" else responder
    if how == "v1" and address != "/queues/d-none":
        address = address.removeprefix("/queues/").replace("%2F", "/").replace("%3D", "=").replace("%2B", "+")
    peer.attach(RECEIVER, address, 5, snd_settle_mode=1)
    peer.note("attached")
    same_names(play)


@scenario
def reply_to_several(play: Play) -> None:
    """Each link of a session has its address."""
    requester, first, responder = asked(play)
    second = volatile(requester, handle=1) or "/queues/d-none"
    granted(requester)
    granted(requester, 1)
    responder.transfer(1, reply(b"1", first))
    responder.transfer(1, reply(b"2", second))
    requester.note("replied")
    same_names(play)


@scenario
def reply_to_pseudo_queue(play: Play) -> None:
    """The name that 0-9-1 uses is no address in 1.0."""
    peer = play.peer().session()
    peer.attach(RECEIVER, "/queues/amq.rabbitmq.reply-to", 0, snd_settle_mode=1)
    peer.note("source")
    other = play.peer().session()
    other.attach(SENDER, "/queues/amq.rabbitmq.reply-to", 0)
    other.note("target")
