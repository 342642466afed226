"""Scenarios of dynamic sources and targets."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.peers import Peer
from compat_tests.differential.amqp_1_0.scenarios.generated import same_names
from compat_tests.differential.amqp_1_0.scenarios.play import Play, each, scenario
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Described, Symbol, UInt, ULong

TEMPORARY = (Symbol("temporary-queue"),)
ROLES = {"source": RECEIVER, "target": SENDER}


def dynamic(peer: Peer, role: bool, handle: int = 0, **fields: Any) -> str | None:
    """Attach to a node that the broker makes; returns its address."""
    terminus = {"dynamic": True, "capabilities": TEMPORARY, **fields.pop("terminus", {})}
    peer.attach(role, fields.pop("address", None), handle, terminus=terminus, **fields)
    for _, body, _ in peer.note("attached"):
        if isinstance(body, c.Attach):
            made = c.read_composite(body.source if role == RECEIVER else body.target)
            return None if made is None else made.address
    return None


@each(**ROLES)
def dynamic_node(play: Play, role: bool) -> None:
    peer = play.peer().session().managed()
    address = dynamic(peer, role)
    if address:
        play.lines.append(str(sorted(peer.ask("GET", address)[1].items())))
        other = play.peer("other").session()
        other.attach(RECEIVER, address, 1)
        other.attach(SENDER, address, 2)
        other.note()
        peer.attach(SENDER, address, 3)
        peer.attach(RECEIVER, address, 4)
        peer.transfer(3)
        peer.flow(4, link_credit=1)
        peer.note("used")
        peer.send(c.Detach(handle=0, closed=True))
        peer.note("detached")
        other.transfer(2)
        other.note()
        play.lines.append(str(peer.ask("GET", address)))
    same_names(play)


@each(**{f"{kind}_{name}": (role, name) for kind, role in ROLES.items() for name in ("end", "close", "lost")})
def dynamic_node_ends(play: Play, value: tuple[bool, str]) -> None:
    role, how = value
    peer = play.peer().session()
    address = dynamic(peer, role)
    if how == "lost":
        peer.transport.drop()
    else:
        peer.send(c.End() if how == "end" else c.Close())
        peer.note(how)
    other = play.peer("other").session()
    other.attach(RECEIVER, address or "/queues/d-none")
    other.note()
    same_names(play)


CASES: dict[str, dict[str, Any]] = {
    "no_capabilities": {"terminus": {"capabilities": None}},
    "other_capabilities": {"terminus": {"capabilities": (Symbol("topic"), Symbol("x"))}},
    "more_capabilities": {"terminus": {"capabilities": (Symbol("x"), *TEMPORARY)}},
    "address": {"address": "/queues/x"},
    "fields": {
        "terminus": {"durable": UInt(2), "expiry_policy": Symbol("never"), "timeout": UInt(7)},
    },
    "properties": {
        "terminus": {
            "dynamic_node_properties": {Symbol("lifetime-policy"): Described(ULong(0x2C), [])},
        }
    },
    "odd_properties": {"terminus": {"dynamic_node_properties": {Symbol("x-b"): True}}},
    "outcomes": {"terminus": {"outcomes": (Symbol("amqp:accepted:list"),)}},
    "filter": {"terminus": {"filter": {Symbol("f"): Described(Symbol("f"), "x")}}},
    "settled": {"snd_settle_mode": 1},
    "name": {"name": "a/b c%€"},
    "long_name": {"name": "n" * 200},
    "nearly_long_name": {"name": "n" * 145},
    "too_long_name": {"name": "n" * 146},
}


@each(
    **{
        f"{kind}_{name}": (role, fields)
        for kind, role in ROLES.items()
        for name, fields in CASES.items()
        if role == RECEIVER or not {"outcomes", "filter"} & {*fields.get("terminus", ())}
    }
)
def dynamic_node_fields(play: Play, value: tuple[bool, dict[str, Any]]) -> None:
    role, fields = value
    peer = play.peer().session()
    dynamic(peer, role, **fields)
    same_names(play)


@scenario
def dynamic_reply_queue(play: Play) -> None:
    """A request and its reply, over a queue that the broker made."""
    requests = play.declare()
    requester = play.peer("requester").session()
    address = dynamic(requester, RECEIVER)
    requester.flow(0, link_credit=5)
    requester.sender(requests, 1)
    responder = play.peer("responder").session()
    responder.receiver(requests, 0, 5)
    requester.transfer(1, message(properties=c.Properties(reply_to=address, message_id="1")))
    requester.note("sent")
    responder.note("got")
    responder.sender(None, 1)
    responder.transfer(1, message(b"reply", properties=c.Properties(to=address, correlation_id="1")))
    responder.note("replied")
    requester.note("got")
    requester.settle(c.Accepted(), 0)
    requester.send(c.Detach(handle=0))
    requester.note("detached")
    responder.transfer(1, message(b"late", properties=c.Properties(to=address)))
    responder.note("late")
    same_names(play)


@each(**ROLES)
def dynamic_node_deleted(play: Play, role: bool) -> None:
    peer = play.peer().session().managed()
    address = dynamic(peer, role)
    if address:
        peer.request("DELETE", address)
        peer.note("deleted")
        peer.send(c.Detach(handle=0))
        peer.note("detached")
    same_names(play)


@scenario
def dynamic_nodes_of_one_name(play: Play) -> None:
    peer = play.peer().session()
    first = dynamic(peer, RECEIVER, 0, name="same")
    second = dynamic(peer, RECEIVER, 1, name="same")
    play.lines.append(str(first == second))
    same_names(play)
