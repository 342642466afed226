"""Scenarios of routing: types of exchanges, keys, alternate exchanges, exchanges bound to exchanges."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from compat_tests.differential.amqp_1_0.peers import Peer
from compat_tests.differential.amqp_1_0.scenarios.play import Play, each, scenario
from compat_tests.scripted.amqp_1_0 import message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Byte,
    Char,
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


@each(
    direct=("direct", "a", ("a", "b", "")),
    fanout=("fanout", "", ("a", "")),
    topic=("topic", "a.*", ("a.b", "a", "a.b.c", "a.")),
    topic_hash=("topic", "#.z", ("z", "a.z", "a.b.z", "zz")),
)
def kinds_of_exchanges(play: Play, value: tuple[str, str, tuple[str, ...]]) -> None:
    kind, key, keys = value
    queue = play.declare()
    name = play.exchange(kind)
    play.bind(name, queue, key)
    peer = play.peer().session()
    for handle, each_key in enumerate(keys):
        peer.sender(f"/exchanges/{name}/{each_key}" if each_key else f"/exchanges/{name}", handle)
        peer.transfer(handle)
        peer.note(each_key)
    play.count(queue)


@scenario
def encoded_names(play: Play) -> None:
    """Names with characters that addresses have to encode."""
    queue = play.declare(suffix="a%2Fb%20%C3%A9")
    name = play.exchange("direct", suffix="x%2Fy")
    peer = play.peer().session()
    status, said = play.manager.ask(
        "POST",
        "/bindings",
        {
            "source": f"{play.prefix}-x/y",
            "destination_queue": f"{play.prefix}-a/b \u00e9",
            "binding_key": "k/\u00fc",
            "arguments": {},
        },
    )
    play.lines.append(f"{status} {said}")
    peer.sender(f"/exchanges/{name}/k%2F%C3%BC", 0)
    peer.transfer(0)
    peer.note()
    peer.sender(None, 1)
    peer.transfer(1, payload=message(properties=c.Properties(to=queue)))
    peer.note()
    peer.receiver(queue, 2, 5)
    peer.note()


HEADER_VALUES: dict[str, Any] = {
    "text": "v",
    "symbol": Symbol("v"),
    "char": Char("v"),
    "binary": b"v",
    "long": 3,
    "int": Int(3),
    "short": Short(3),
    "byte": Byte(3),
    "ulong": ULong(3),
    "uint": UInt(3),
    "ushort": UShort(3),
    "ubyte": UByte(3),
    "float": Float(3.0),
    "double": 3.0,
    "true": True,
    "false": False,
    "timestamp": Milliseconds(3),
    "uuid": UUID(int=3),
    "null": None,
    "absent": ...,
}
BINDINGS: dict[str, Any] = {
    "text": "v",
    "number": 3,
    "float": 3.0,
    "true": True,
    "null": None,
    "time": Milliseconds(3000),
}


def _outcomes(peer: Peer) -> list[str]:
    said = [each.what for each in peer.frames() if isinstance(each.what, c.Disposition)]
    return [c.read_composite(each.state).NAME for each in said]


@each(**BINDINGS)
def headers_exchange(play: Play, bound: Any) -> None:
    """Which types of application properties a binding of each type matches."""
    name = play.exchange("headers")
    queue = play.declare()
    play.bind(name, queue, "", x_match="all", h=bound)
    peer = play.peer().session()
    peer.sender(f"/exchanges/{name}")
    for kind, value in HEADER_VALUES.items():
        application = {} if value is ... else {"h": value}
        peer.transfer(payload=message(application={"o": 1, **application}))
        found = [
            c.read_composite(each.what.state).NAME for each in peer.frames() if hasattr(each.what, "state")
        ]
        play.lines.append(f"{kind}: {found}")


@each(
    all=({"x_match": "all", "a": 1, "b": "t"}),
    any=({"x_match": "any", "a": 1, "b": "t"}),
    all_with_x={"x_match": "all-with-x", "a": 1, "x-n": 2},
    any_with_x={"x_match": "any-with-x", "a": 5, "x-n": 2},
    ignored_x={"x_match": "all", "a": 1, "x-n": 5},
    default={"a": 1, "b": "t"},
    empty={},
    empty_any={"x_match": "any"},
)
def headers_matched(play: Play, arguments: dict[str, Any]) -> None:
    name = play.exchange("headers")
    queue = play.declare()
    play.bind(name, queue, "", **arguments)
    peer = play.peer().session()
    peer.sender(f"/exchanges/{name}")
    for application in ({"a": 1, "b": "t"}, {"a": 1}, {"b": "t"}, {"a": 2, "b": "u"}, {}):
        annotations = {Symbol("x-n"): 2}
        peer.transfer(payload=message(annotations=annotations, application=application))
        found = [
            c.read_composite(each.what.state).NAME for each in peer.frames() if hasattr(each.what, "state")
        ]
        play.lines.append(f"{application}: {found}")


@scenario
def alternate(play: Play) -> None:
    other = play.exchange("fanout", suffix="other")
    queue = play.declare()
    play.bind(other, queue, "")
    name = play.exchange("direct", arguments={"alternate-exchange": other})
    peer = play.peer().session()
    peer.sender(f"/exchanges/{name}/nowhere")
    peer.transfer()
    peer.note()
    peer.receiver(queue, 1, 5)
    peer.note()


@scenario
def exchange_to_exchange(play: Play) -> None:
    first, second = play.exchange("topic"), play.exchange("fanout", suffix="y")
    queue = play.declare()
    body = {"source": first, "destination_exchange": second, "binding_key": "a.#", "arguments": {}}
    play.lines.append(str(play.manager.ask("POST", "/bindings", body)))
    play.bind(second, queue, "")
    peer = play.peer().session()
    peer.sender(f"/exchanges/{first}/a.b")
    peer.transfer()
    peer.note("routed")
    peer.sender(f"/exchanges/{first}/b", 1)
    peer.transfer(1)
    peer.note()
    peer.receiver(queue, 2, 5)
    peer.note()
    path = f"/bindings?src={first}&dste={second}&key=a.%23"
    play.lines.append(str(play.manager.ask("GET", path)))


@scenario
def internal_exchange(play: Play) -> None:
    name = play.exchange("fanout", internal=True)
    peer = play.peer().session()
    peer.attach(False, f"/exchanges/{name}")
    peer.note()


@each(two=["b", "c"], same=["a"], none=[], unknown=["zzz"], empty=[""])
def further_keys(play: Play, keys: list[str]) -> None:
    """The annotation x-cc, to queues at a direct exchange."""
    name = play.exchange("direct")
    queues = [play.declare(suffix=key) for key in "abc"]
    for key, queue in zip("abc", queues, strict=True):
        play.bind(name, queue, key)
    peer = play.peer().session()
    peer.sender(f"/exchanges/{name}/a")
    peer.transfer(payload=message(annotations={Symbol("x-cc"): keys}))
    peer.note()
    for queue in queues:
        play.count(queue)
    client = play.older()
    play.lines += client.do(1, "basic.get", queue=queues[0].removeprefix("/queues/"))


@scenario
def several_queues(play: Play) -> None:
    """A message to queues of all types."""
    name = play.exchange("fanout")
    for kind in ("classic", "quorum", "stream"):
        play.bind(name, play.declare(kind, suffix=kind), "")
    peer = play.peer().session()
    peer.sender(f"/exchanges/{name}")
    for _ in range(3):
        peer.transfer()
    peer.note()


@each(matches="a.b", other="c")
def topic_to(play: Play, key: str) -> None:
    """The anonymous terminus and a topic exchange."""
    queue = play.declare()
    play.bind("amq.topic", queue, f"{play.prefix}.a.*")
    peer = play.peer().session()
    peer.sender(None)
    peer.transfer(payload=message(properties=c.Properties(to=f"/exchanges/amq.topic/{play.prefix}.{key}")))
    peer.note()
    peer.receiver(queue, 1, 1)
    peer.note()


@scenario
def unrouted_settled(play: Play) -> None:
    name = play.exchange("direct")
    peer = play.peer().session()
    peer.sender(f"/exchanges/{name}/none", snd_settle_mode=1)
    for _ in range(3):
        peer.transfer(settled=True)
    peer.note()
    peer.flow(0, delivery_count=3, link_credit=167, echo=True)
    peer.note("echo")
