"""Scenarios of the management node."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.scenarios.play import KINDS, Play, each, scenario
from compat_tests.scripted.amqp_1_0 import SENDER, section
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Symbol,
    UInt,
)

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
