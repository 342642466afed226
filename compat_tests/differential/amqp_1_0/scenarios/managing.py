"""Scenarios of the management node: declarations of each kind, and all that it refuses."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.peers import plain
from compat_tests.differential.amqp_1_0.scenarios.play import KINDS, Play, each, scenario
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, message, section
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Byte,
    Int,
    Symbol,
    UByte,
    UInt,
    ULong,
    encode_value,
)

ARGUMENTS: dict[str, dict[str, Any]] = {
    "ttl": {"x-message-ttl": 1000},
    "ttl_uint": {"x-message-ttl": UInt(1000)},
    "ttl_ubyte": {"x-message-ttl": UByte(100)},
    "ttl_ulong": {"x-message-ttl": ULong(100)},
    "ttl_negative": {"x-message-ttl": Int(-1)},
    "ttl_text": {"x-message-ttl": "1"},
    "ttl_double": {"x-message-ttl": 1.5},
    "ttl_zero": {"x-message-ttl": 0},
    "expires_zero": {"x-expires": 0},
    "expires": {"x-expires": 100000},
    "length": {"x-max-length": 5},
    "length_negative": {"x-max-length": Byte(-5)},
    "overflow": {"x-overflow": "drop-head"},
    "overflow_wrong": {"x-overflow": "nope"},
    "overflow_symbol": {"x-overflow": Symbol("reject-publish")},
    "overflow_number": {"x-overflow": 5},
    "priorities": {"x-max-priority": 5},
    "priorities_many": {"x-max-priority": 256},
    "priorities_negative": {"x-max-priority": -1},
    "dead_letters": {"x-dead-letter-exchange": "amq.direct", "x-dead-letter-routing-key": "k"},
    "dead_letter_key_only": {"x-dead-letter-routing-key": "k"},
    "dead_letters_number": {"x-dead-letter-exchange": 5},
    "single": {"x-single-active-consumer": True},
    "single_text": {"x-single-active-consumer": "true"},
    "mode": {"x-queue-mode": "lazy"},
    "version": {"x-queue-version": 2},
    "limit": {"x-delivery-limit": 5},
    "strategy": {"x-dead-letter-strategy": "at-least-once"},
    "age": {"x-max-age": "1h"},
    "age_wrong": {"x-max-age": "soon"},
    "segment": {"x-stream-max-segment-size-bytes": 1000},
    "group": {"x-quorum-initial-group-size": 1},
    "locator": {"x-queue-leader-locator": "client-local"},
    "locator_wrong": {"x-queue-leader-locator": "nope"},
    "unknown": {"x-unknown": "v"},
    "other": {"other": True},
    "list": {"x-list": [1, "a", {"b": Symbol("c")}]},
    "null": {"x-null": None},
    "binary": {"x-binary": b"\x01"},
}


def told(status: str, said: Any) -> str:
    if isinstance(said, dict):
        said = {key: value for key, value in said.items() if key not in ("leader", "replicas")}
    return f"{status} {plain(said)}"


@each(**{f"{name}_{kind}": (kind, said) for kind in KINDS for name, said in ARGUMENTS.items()})
def queue_arguments(play: Play, value: tuple[str, dict[str, Any]]) -> None:
    kind, arguments = value
    path = f"/queues/{play.prefix}"
    peer = play.peer().session().managed()
    body = {"durable": True, "arguments": {"x-queue-type": kind, **arguments}}
    for method, said in (("PUT", body), ("PUT", body), ("GET", None), ("DELETE", None)):
        peer.request(method, path, said)
        for _, frame, payload in peer.frames():
            if isinstance(frame, c.Transfer):
                response = _response(payload)
                play.lines.append(f"{method} {told(*response)}")
            elif isinstance(frame, (c.End, c.Close, c.Detach)):
                play.lines.append(plain(frame))
                return


def _response(payload: bytes) -> tuple[str, Any]:
    from compat_tests.scripted.amqp_1_0 import sections

    said = sections(payload)
    return said["properties"].subject, said["value"]


REQUESTS: dict[str, list[tuple[str, str, Any]]] = {
    "transient": [("PUT", "/queues/{}", {"durable": False})],
    "transient_exclusive": [("PUT", "/queues/{}", {"durable": False, "exclusive": True})],
    "auto_delete": [("PUT", "/queues/{}", {"auto_delete": True}), ("GET", "/queues/{}", None)],
    "exclusive": [("PUT", "/queues/{}", {"exclusive": True}), ("GET", "/queues/{}", None)],
    "exclusive_quorum": [
        ("PUT", "/queues/{}", {"exclusive": True, "arguments": {"x-queue-type": "quorum"}}),
    ],
    "auto_delete_stream": [
        ("PUT", "/queues/{}", {"auto_delete": True, "arguments": {"x-queue-type": "stream"}}),
    ],
    "no_body": [("PUT", "/queues/{}", None)],
    "empty_body": [("PUT", "/queues/{}", {})],
    "durable_text": [("PUT", "/queues/{}", {"durable": "yes"})],
    "arguments_list": [("PUT", "/queues/{}", {"arguments": ["a"]})],
    "property_text": [("PUT", "/queues/{}", {"nope": "a"})],
    "property_boolean": [("PUT", "/queues/{}", {"nope": True})],
    "property_map": [("PUT", "/queues/{}", {"nope": {}})],
    "other_type": [
        ("PUT", "/queues/{}", {}),
        ("PUT", "/queues/{}", {"arguments": {"x-queue-type": "quorum"}}),
    ],
    "other_durability": [("PUT", "/queues/{}", {}), ("PUT", "/queues/{}", {"durable": False})],
    "other_arguments": [
        ("PUT", "/queues/{}", {"arguments": {"x-max-length": 5}}),
        ("PUT", "/queues/{}", {"arguments": {"x-max-length": 6}}),
        ("PUT", "/queues/{}", {}),
    ],
    "more_arguments": [("PUT", "/queues/{}", {}), ("PUT", "/queues/{}", {"arguments": {"x-max-length": 6}})],
    "carriage_return": [("PUT", "/queues/a%0Db", {})],
    "encoded": [("PUT", "/queues/{}%20%2F%25", {}), ("DELETE", "/queues/{}%20%2F%25", None)],
    "bad_encoding": [("GET", "/queues/%zz", None)],
    "query": [("GET", "/queues/{}?a=b", None)],
    "deeper": [("GET", "/queues/a/b", None)],
    "messages": [("GET", "/queues/a/messages", None)],
    "post_queue": [("POST", "/queues/{}", {})],
    "all_queues": [("GET", "/queues", None)],
    "no_slash": [("GET", "queues/x", None)],
    "lower_case": [("get", "/queues/x", None)],
    "purge": [("PUT", "/queues/{}", {}), ("DELETE", "/queues/{}/messages", None)],
    "delete_reserved": [("DELETE", "/queues/amq.none", None)],
    "exchange_types": [
        ("PUT", "/exchanges/{}", {"type": kind}) for kind in ("direct", "fanout", "topic", "headers")
    ],
    "exchange_defaults": [("PUT", "/exchanges/{}", {}), ("PUT", "/exchanges/{}", {"type": "direct"})],
    "exchange_none": [("PUT", "/exchanges/{}", None)],
    "exchange_durability": [("PUT", "/exchanges/{}", {}), ("PUT", "/exchanges/{}", {"durable": False})],
    "exchange_auto_delete": [("PUT", "/exchanges/{}", {}), ("PUT", "/exchanges/{}", {"auto_delete": True})],
    "exchange_internal": [("PUT", "/exchanges/{}", {}), ("PUT", "/exchanges/{}", {"internal": True})],
    "exchange_arguments": [
        ("PUT", "/exchanges/{}", {"arguments": {"alternate-exchange": "amq.direct"}}),
        ("PUT", "/exchanges/{}", {}),
    ],
    "exchange_alternate_number": [("PUT", "/exchanges/{}", {"arguments": {"alternate-exchange": 5}})],
    "exchange_alternate_missing": [("PUT", "/exchanges/{}", {"arguments": {"alternate-exchange": "none"}})],
    "exchange_property": [("PUT", "/exchanges/{}", {"nope": 1})],
    "exchange_newline": [("PUT", "/exchanges/a%0Ab", {})],
    "exchange_empty": [("PUT", "/exchanges/", {}), ("DELETE", "/exchanges/", None)],
    "exchange_type_number": [("PUT", "/exchanges/{}", {"type": 5})],
    "exchange_get": [("GET", "/exchanges/{}", None)],
    "predeclared_other": [("PUT", "/exchanges/amq.direct", {"type": "fanout"})],
    "bind_arguments": [
        ("PUT", "/queues/{}", {}),
        (
            "POST",
            "/bindings",
            {"source": "amq.direct", "destination_queue": "{}", "binding_key": "k", "arguments": {"a": 1}},
        ),
        ("GET", "/bindings?src=amq.direct&dstq={}&key=k", None),
        ("DELETE", "/bindings/src=amq.direct;dstq={};key=k;args=", None),
        ("GET", "/bindings?src=amq.direct&dstq={}&key=k", None),
    ],
    "bind_headers_wrong": [
        ("PUT", "/queues/{}", {}),
        (
            "POST",
            "/bindings",
            {
                "source": "amq.headers",
                "destination_queue": "{}",
                "binding_key": "",
                "arguments": {"x-match": "nope"},
            },
        ),
    ],
    "bind_to_default": [
        (
            "POST",
            "/bindings",
            {"source": "amq.direct", "destination_exchange": "", "binding_key": "k", "arguments": {}},
        ),
    ],
    "bind_both": [
        ("PUT", "/queues/{}", {}),
        (
            "POST",
            "/bindings",
            {
                "source": "amq.direct",
                "destination_queue": "{}",
                "destination_exchange": "amq.fanout",
                "binding_key": "k",
                "arguments": {},
            },
        ),
    ],
    "bind_number": [
        (
            "POST",
            "/bindings",
            {"source": "amq.direct", "destination_queue": "none", "binding_key": 5, "arguments": {}},
        ),
    ],
    "bindings_without_source": [("GET", "/bindings?dstq=a&key=k", None)],
    "bindings_without_key": [("GET", "/bindings?src=amq.direct&dstq=a", None)],
    "bindings_without_destination": [("GET", "/bindings?src=amq.direct&key=k", None)],
    "bindings_unknown": [("GET", "/bindings?src=none&dstq=none&key=k", None)],
    "bindings_default": [("PUT", "/queues/{}", {}), ("GET", "/bindings?src=&dstq={}&key={}", None)],
    "unbind_missing_queue": [("DELETE", "/bindings/src=amq.direct;dstq=none;key=k;args=", None)],
    "unbind_missing_exchange": [("DELETE", "/bindings/src=none;dstq=none;key=k;args=", None)],
    "unbind_default": [("DELETE", "/bindings/src=;dstq=none;key=k;args=", None)],
    "unbind_partial": [("DELETE", "/bindings/src=amq.direct", None)],
    "unbind_hash": [("DELETE", "/bindings/src=amq.direct;dstq=none;key=k;args=abc", None)],
}


def _filled(what: Any, name: str) -> Any:
    if isinstance(what, str):
        return what.replace("{}", name)
    return {key: _filled(each_, name) for key, each_ in what.items()} if isinstance(what, dict) else what


@each(**REQUESTS)
def requests(play: Play, asked: list[tuple[str, str, Any]]) -> None:
    peer = play.peer().session().managed()
    for method, path, body in asked:
        peer.request(method, _filled(path, play.prefix), _filled(body, play.prefix))
        for _, frame, payload in peer.frames():
            if isinstance(frame, c.Transfer):
                play.lines.append(f"{method} {told(*_response(payload))}")
            elif isinstance(frame, (c.End, c.Close, c.Detach)):
                play.lines.append(plain(frame))
        if peer.transport.closed:
            play.lines.append("closed")
    play.manager.ask("DELETE", f"/queues/{play.prefix}")
    play.manager.ask("DELETE", f"/exchanges/{play.prefix}")


@each(
    message_id=message(None, properties=c.Properties(subject="GET", to="/queues/none", reply_to="$me"))
    + section(0x77, None),
    to=message(None, properties=c.Properties(message_id="1", subject="GET", reply_to="$me"))
    + section(0x77, None),
    subject=message(None, properties=c.Properties(message_id="1", to="/queues/none", reply_to="$me"))
    + section(0x77, None),
    reply_to=message(None, properties=c.Properties(message_id="1", subject="GET", to="/queues/none"))
    + section(0x77, None),
    other_reply_to=message(
        None, properties=c.Properties(message_id="1", subject="GET", to="/queues/none", reply_to="other")
    )
    + section(0x77, None),
    number_id=message(
        None, properties=c.Properties(message_id=ULong(7), subject="GET", to="/queues/none", reply_to="$me")
    )
    + section(0x77, None),
    binary_id=message(
        None, properties=c.Properties(message_id=b"\x01", subject="GET", to="/queues/none", reply_to="$me")
    )
    + section(0x77, None),
    data=message(
        b"x", properties=c.Properties(message_id="1", subject="GET", to="/queues/none", reply_to="$me")
    ),
    nothing=b"",
    no_properties=encode_value(None),
)
def odd_requests(play: Play, octets: bytes) -> None:
    peer = play.peer().session().managed()
    peer.transfer(100, octets, settled=True)
    peer.note()


@each(
    unsettled=({"snd_settle_mode": 0},),
    mixed=({},),
    unpaired=({"snd_settle_mode": 1, "properties": {}},),
    paired_false=({"snd_settle_mode": 1, "properties": {Symbol("paired"): False}},),
    paired_text=({"snd_settle_mode": 1, "properties": {Symbol("paired"): "true"}},),
)
def odd_pairs(play: Play, value: tuple[dict[str, Any]]) -> None:
    said = {"name": "pair", "properties": {Symbol("paired"): True}, **value[0]}
    peer = play.peer().session()
    peer.attach(SENDER, "/management", 0, **said)
    peer.note("sender")
    peer.attach(RECEIVER, "/management", 1, **said)
    peer.note("receiver")


@scenario
def unsettled_request(play: Play) -> None:
    peer = play.peer().session().managed()
    octets = c.Properties(message_id="1", subject="GET", to="/queues/x", reply_to="$me").encode()
    peer.transfer(100, octets + section(0x77, None), settled=False)
    peer.note()


@scenario
def request_in_parts(play: Play) -> None:
    peer = play.peer().session().managed()
    octets = c.Properties(message_id="1", subject="GET", to="/queues/x", reply_to="$me").encode()
    peer.transfer(100, octets, settled=True, more=True)
    peer.transfer(100, section(0x77, None), settled=True)
    peer.note()


@scenario
def no_credit_for_responses(play: Play) -> None:
    said = {"name": "pair", "snd_settle_mode": 1, "properties": {Symbol("paired"): True}}
    peer = play.peer().session()
    peer.attach(SENDER, "/management", 100, **said)
    peer.attach(RECEIVER, "/management", 101, **said)
    peer.wait_for(c.Attach, c.Attach, c.Flow)
    peer._requests = 0
    peer.request("GET", "/queues/none")
    peer.note()


@scenario
def credit_of_requests(play: Play) -> None:
    """Credit for requests is granted again when half of it is left; responses use up theirs."""
    peer = play.peer().session().managed()
    for number in range(6):
        peer.request("GET", f"/queues/none{number}")
        peer.note()
    peer.flow(101, link_credit=1, delivery_count=(peer.first_count + 6) & 0xFFFFFFFF, echo=True)
    peer.note("echo")


@scenario
def detached_pair(play: Play) -> None:
    peer = play.peer().session().managed()
    peer.send(c.Detach(handle=101, closed=True))
    peer.note()
    peer.request("GET", "/queues/none")
    peer.note("asked")


@scenario
def consumers_and_messages(play: Play) -> None:
    for kind in KINDS:
        queue = play.declare(kind, suffix=kind)
        peer = play.peer().session()
        peer.sender(queue)
        peer.transfer().transfer()
        peer.frames()
        peer.receiver(queue, 1)
        peer.frames()
        if kind != "stream":
            status, said = play.manager.ask("GET", queue)
            play.lines.append(told(status, said))
            play.lines.append(told(*play.manager.ask("DELETE", f"{queue}/messages")))
        play.lines.append(told(*play.manager.ask("DELETE", queue))[:40] if kind != "stream" else "")
