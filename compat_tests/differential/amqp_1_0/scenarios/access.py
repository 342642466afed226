"""Scenarios of accounts: logins, virtual hosts, permissions, limits."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.peers import Peer
from compat_tests.differential.amqp_1_0.scenarios.play import Play, alone, each, scenario
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import PROTOCOL_HEADER, SASL_HEADER
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol


def logged_in(play: Play, user: str, password: str, **fields: Any) -> Peer:
    peer = play.peer(user)
    peer.raw(SASL_HEADER)
    response = f"\0{user}\0{password}".encode()
    peer.send(c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=response))
    peer.raw(PROTOCOL_HEADER)
    peer.send(c.Open(**{"container_id": "test", **fields}))
    return peer


@each(
    right=("probe-changing", "p"),
    wrong=("probe-changing", "q"),
    unknown=("nobody", "p"),
    empty=("probe-changing", ""),
    no_vhost=("probe-novhost", "novhost"),
)
def logins(play: Play, value: tuple[str, str]) -> None:
    peer = logged_in(play, *value)
    play.stage.pass_time(3.6)
    # When the socket closes behind a refusal depends on the node.
    play.lines += [repr(each.what) for each in peer.frames() if isinstance(each.what, c.SaslOutcome)]


@each(
    other="vhost:probe-quorum",
    missing="vhost:none",
    default="vhost:/",
    empty="vhost:",
    plain="probe-quorum",
    encoded="vhost:%2F",
)
def hosts(play: Play, hostname: str) -> None:
    peer = play.peer().open(hostname=hostname)
    play.stage.pass_time(3.6)
    peer.note()


@scenario
def other_host(play: Play) -> None:
    """What a virtual host has is not in another one."""
    queue = play.declare()
    peer = play.peer().session(hostname="vhost:probe-classic")
    peer.attach(RECEIVER, queue)
    peer.note()


@scenario
def default_type_of_host(play: Play) -> None:
    peer = play.peer().session(hostname="vhost:probe-quorum").managed()
    path = f"/queues/{play.prefix}"
    peer.ask("DELETE", path)
    status, said = peer.ask("PUT", path, {})
    play.lines.append(f"{status} {said['type']} {said['arguments']}")
    peer.ask("DELETE", path)


USERS = {
    "no_configure": "probe-no-configure",
    "no_write": "probe-no-write",
    "no_read": "probe-no-read",
    "only_configure": "probe-only-configure",
    "only_write": "probe-only-write",
    "only_read": "probe-only-read",
}
ACTIONS: dict[str, Any] = {
    "send_to_queue": lambda peer, queue: peer.attach(SENDER, queue, 1),
    "send_to_exchange": lambda peer, queue: peer.attach(SENDER, "/exchanges/amq.topic/k", 1),
    "receive": lambda peer, queue: peer.attach(RECEIVER, queue, 1),
}


@each(**{f"{action}_{name}": (user, action) for action in ACTIONS for name, user in USERS.items()})
def permissions(play: Play, value: tuple[str, str]) -> None:
    user, action = value
    queue = play.declare()
    peer = logged_in(play, user, "p").begin()
    peer.wait_for(c.Begin)
    ACTIONS[action](peer, queue)
    peer.note()


MANAGED: dict[str, tuple[str, str, Any]] = {
    "declare": ("PUT", "/queues/{}-new", {}),
    "declare_dead_letters": (
        "PUT",
        "/queues/{}-new",
        {"arguments": {"x-dead-letter-exchange": "amq.fanout"}},
    ),
    "get": ("GET", "/queues/{}-q", None),
    "purge": ("DELETE", "/queues/{}-q/messages", None),
    "delete": ("DELETE", "/queues/{}-q", None),
    "exchange": ("PUT", "/exchanges/{}-new", {}),
    "exchange_alternate": ("PUT", "/exchanges/{}-new", {"arguments": {"alternate-exchange": "amq.fanout"}}),
    "delete_exchange": ("DELETE", "/exchanges/{}-new", None),
    "bind": (
        "POST",
        "/bindings",
        {"source": "amq.topic", "destination_queue": "{}-q", "binding_key": "k", "arguments": {}},
    ),
    "unbind": ("DELETE", "/bindings/src=amq.topic;dstq={}-q;key=k;args=", None),
    "bindings": ("GET", "/bindings?src=amq.topic&dstq={}-q&key=k", None),
}


@each(**{f"{request}_{name}": (user, request) for request in MANAGED for name, user in USERS.items()})
def managing_rights(play: Play, value: tuple[str, str]) -> None:
    user, name = value
    play.declare()
    method, path, body = MANAGED[name]
    peer = logged_in(play, user, "p").begin()
    peer.wait_for(c.Begin)
    peer.managed()
    if isinstance(body, dict):
        body = {
            key: each_.replace("{}", play.prefix) if isinstance(each_, str) else each_
            for key, each_ in body.items()
        }
    peer.request(method, path.replace("{}", play.prefix), body)
    for _, frame, payload in peer.frames():
        if isinstance(frame, c.Transfer):
            from compat_tests.scripted.amqp_1_0 import sections

            said = sections(payload)
            text = said["value"] if isinstance(said["value"], str) else ""
            play.lines.append(f"{said['properties'].subject} {text}")
        elif isinstance(frame, (c.End, c.Close, c.Detach)):
            from compat_tests.differential.amqp_1_0.peers import plain

            play.lines.append(plain(frame))
    play.manager.ask("DELETE", f"/queues/{play.prefix}-new")
    play.manager.ask("DELETE", f"/exchanges/{play.prefix}-new")


@each(
    anonymous_queue="{}",
    anonymous_exchange="/exchanges/amq.topic/k",
    anonymous_missing="/exchanges/none/k",
)
def anonymous_rights(play: Play, to: str) -> None:
    queue = play.declare()
    peer = logged_in(play, "probe-no-write", "p").begin()
    peer.wait_for(c.Begin)
    peer.sender(None)
    peer.transfer(payload=message(properties=c.Properties(to=to.replace("{}", queue))))
    peer.note()


@each(allowed="ok.k", denied="no.k")
def topic_rights(play: Play, key: str) -> None:
    peer = logged_in(play, "probe-topic", "topic").begin()
    peer.wait_for(c.Begin)
    peer.sender(f"/exchanges/amq.topic/{key}")
    peer.transfer()
    peer.note()


@each(allowed="ok.#", denied="no.#")
def topic_binding_rights(play: Play, key: str) -> None:
    play.declare()
    peer = logged_in(play, "probe-topic", "topic").begin()
    peer.wait_for(c.Begin)
    peer.managed()
    body = {
        "source": "amq.topic",
        "destination_queue": f"{play.prefix}-q",
        "binding_key": key,
        "arguments": {},
    }
    peer.request("POST", "/bindings", body)
    peer.note()


@each(one="probe-one-connection", none="probe-no-connection")
def connection_limits(play: Play, name: str) -> None:
    for which in ("first", "second"):
        peer = play.peer(which).open(hostname=f"vhost:{name}")
        play.stage.pass_time(3.6)
        peer.note()


@each(one="probe-one-connection", none="probe-no-connection")
def connection_limits_of_user(play: Play, name: str) -> None:
    for _ in range(2):
        peer = logged_in(play, name, "p")
        play.stage.pass_time(3.6)
        peer.note()


@scenario
def queue_limit(play: Play) -> None:
    peer = play.peer().session(hostname="vhost:probe-no-queue").managed()
    peer.request("PUT", f"/queues/{play.prefix}", {})
    peer.note()


@alone
def alarm_of_memory(play: Play) -> None:
    _alarmed(play, "memory")


@alone
def alarm_of_disk(play: Play) -> None:
    _alarmed(play, "disk")


def _alarmed(play: Play, resource: str) -> None:
    operator = play.stage.operator
    queue = play.declare()
    peer = play.peer().session()
    peer.sender(queue, 0)
    try:
        operator.set_alarms(resource)
        play.stage.pass_time(1.5)
        peer.note("raised")
        peer.transfer()
        peer.note("published")
        peer.receiver(queue, 1, 5)
        peer.note("received")
        other = play.peer("other").open()
        other.wait_for(c.Open)
        other.begin()
        other.note("begins")
        other.attach(SENDER, queue, 0)
        other.note("attaches")
    finally:
        operator.set_alarms()
    play.stage.pass_time(1.5)
    peer.note("cleared")
    other.note("cleared")
    peer.transfer()
    peer.note("published")


@alone
def closed_by_operator(play: Play) -> None:
    peer = play.peer().session()
    play.stage.operator.close_all_connections("maintenance")
    play.stage.pass_time(0.5)
    peer.note()


@alone
def permission_taken_away(play: Play) -> None:
    operator = play.stage.operator
    queue = play.declare()
    operator.set_permissions("probe-changing", ".*", ".*", ".*")
    peer = logged_in(play, "probe-changing", "p").begin()
    peer.wait_for(c.Begin)
    peer.sender(queue, 0)
    peer.transfer()
    peer.note()
    try:
        operator.set_permissions("probe-changing", "^$", "^$", "^$")
        peer.transfer()
        peer.note("taken away")
        peer.attach(RECEIVER, queue, 1)
        peer.note("attach")
    finally:
        operator.set_permissions("probe-changing", ".*", ".*", ".*")
