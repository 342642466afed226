"""Connections and channels: the handshake, its errors, the close, and what belongs on which channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compat_tests.differential.codec import (
    METHODS,
    Tagged,
    content_header,
    encode_table,
    frame,
    method_frame,
)
from compat_tests.differential.raw_client import PROTOCOL_HEADER, RawClient
from compat_tests.differential.script import *

# --- protocol header ---------------------------------------------------------------------------------------

HEADERS = {
    "0-9-1": PROTOCOL_HEADER,
    "0-9": b"AMQP\1\1\0\x09",
    "0-8": b"AMQP\1\1\x08\0",
    "0-8-old": b"AMQP\1\1\x09\1",
    "0-10": b"AMQP\1\1\0\x0a",
    "1-0": b"AMQP\0\1\0\0",
    "1-0-sasl": b"AMQP\3\1\0\0",
    "1-0-tls": b"AMQP\2\1\0\0",
    "0-9-2": b"AMQP\0\0\x09\2",
    "0-0-0-0": b"AMQP\0\0\0\0",
    "http": b"GET / HTTP/1.0\r\n\r\n",
    "zeros": b"\0" * 8,
    "tls": bytes.fromhex("160301020001"),
    "wrong-case": b"amqp\0\0\x09\1",
    "first-wrong": b"XMQP\0\0\x09\1",
    "100-1-1": b"AMQP\x64\1\1\0",
}


def _header(name: str, octets: bytes) -> None:
    @case(f"conn/header-{name}")
    def _(scene: Scene) -> list[str]:
        client = scene.client(handshake=False, header=octets)
        return [text[:60] for text in client.until("connection.start", seconds=2.0)]


for _name, _octets in HEADERS.items():
    _header(_name, _octets)


def _cut_short(name: str, octets: bytes) -> None:
    @case(f"conn/{name}")
    def _(scene: Scene) -> list[str]:
        client = scene.client(handshake=False, header=octets)
        client.end_sending()
        return [text[:60] for text in client.drain()]


_cut_short("header-cut-short", b"AMQ")
_cut_short("header-then-eof", PROTOCOL_HEADER)
_cut_short("eof-at-once", b"")

# --- start, tune, open -------------------------------------------------------------------------------------

LOGIN: dict[str, Any] = {"mechanism": "PLAIN", "response": "\0guest\0guest", "locale": "en_US"}
TUNE = {"channel_max": 2047, "frame_max": 131072, "heartbeat": 0}
REFUSAL = 5.0
"""Seconds; RabbitMQ ends a failed handshake after three."""


def arrived_at(scene: Scene, stage: str, **login: Any) -> RawClient:
    """A client at one stage of the handshake: it awaits the tune-ok it will send ("tune"), …"""
    client = scene.client(handshake=False)
    if stage == "start":
        client.until("connection.start")
        return client
    client.start_ok(**login)
    client.until("connection.tune")
    if stage == "open":
        client.tell(0, "connection.tune-ok", **TUNE)
    return client


@case("conn/start-bytes")
def _(scene: Scene) -> list[str]:
    return scene.client(handshake=False).until("connection.start")


@case("conn/tune")
def _(scene: Scene) -> list[str]:
    client = scene.client(handshake=False)
    client.start_ok()
    return client.until("connection.tune")


@case("conn/open-ok")
def _(scene: Scene) -> list[str]:
    client = arrived_at(scene, "open")
    client.tell(0, "connection.open", virtual_host="/")
    return [client.octets().hex()]


def login(name: str, **how: Any) -> None:
    """What comes of logging in like this."""

    @case(f"conn/{name}")
    def _(scene: Scene) -> list[str]:
        client = scene.client(handshake=False)
        client.start_ok(**how)
        came = client.until("connection.tune", seconds=REFUSAL)
        return came if "connection.close(" not in came[-1] else came + client.drain()


def _amqplain(**fields: Any) -> bytes:
    return encode_table(fields)[4:]


def _bytes(text: str) -> Tagged:
    return Tagged("x", text)


login("bad-password", password="wrong")
login("unknown-user", user="nobody")
login("empty-password", password="")
login("user-cr-lf", user="no\nbody")
login("bad-password-no-capability", password="wrong", capabilities={})
login("bad-password-no-capabilities-table", password="wrong", capabilities=None)
login("capability-false", password="wrong", capabilities={"authentication_failure_close": False})
login("unknown-mechanism", mechanism="BOGUS")
login("empty-mechanism", mechanism="")
login("lower-case-mechanism", mechanism="plain")
login("external-mechanism", mechanism="EXTERNAL", response="")
login("anonymous-mechanism", mechanism="ANONYMOUS", response="")
login("cr-demo", mechanism="RABBIT-CR-DEMO", response="guest")
login("plain-no-nul", response="guest")
login("plain-empty", response="")
login("plain-extra-nul", response="\0guest\0gu\0est")
login("plain-authzid", response="other\0guest\0guest")
login("plain-one-nul", response="\0guest")
login("amqplain-ok", mechanism="AMQPLAIN", response=_amqplain(LOGIN="guest", PASSWORD="guest"))
login("amqplain-order", mechanism="AMQPLAIN", response=_amqplain(PASSWORD="guest", LOGIN="guest"))
login("amqplain-bad", mechanism="AMQPLAIN", response=_amqplain(LOGIN="guest", PASSWORD="x"))
login("amqplain-missing", mechanism="AMQPLAIN", response=_amqplain(LOGIN="guest"))
login("amqplain-int", mechanism="AMQPLAIN", response=_amqplain(LOGIN=5, PASSWORD="guest"))
login("amqplain-password-int", mechanism="AMQPLAIN", response=_amqplain(LOGIN="guest", PASSWORD=5))
login(
    "amqplain-login-bytes", mechanism="AMQPLAIN", response=_amqplain(LOGIN=_bytes("guest"), PASSWORD="guest")
)
login(
    "amqplain-password-bytes",
    mechanism="AMQPLAIN",
    response=_amqplain(LOGIN="guest", PASSWORD=_bytes("guest")),
)
login("amqplain-wrong-bytes", mechanism="AMQPLAIN", response=_amqplain(LOGIN="guest", PASSWORD=_bytes("x")))
login("amqplain-garbage", mechanism="AMQPLAIN", response=b"\xff\xff\xff")
login(
    "amqplain-with-length",
    mechanism="AMQPLAIN",
    response=encode_table({"LOGIN": "guest", "PASSWORD": "guest"}),
)
login("unknown-locale", locale="xx_XX")


def start_ok(name: str, properties: Mapping[str, Any]) -> None:
    """What comes of these client properties."""

    @case(f"conn/{name}")
    def _(scene: Scene) -> list[str]:
        client = arrived_at(scene, "start")
        client.tell(0, "connection.start-ok", client_properties=properties, **LOGIN)
        return client.until("connection.tune", seconds=REFUSAL)


start_ok("frame-4096-before-tune", {"p": "x" * 4040})
start_ok("frame-over-4096-before-tune", {"p": "x" * 6000})
start_ok("frame-over-8192-before-tune", {"p": "x" * 9000})
start_ok("start-ok-capabilities-not-table", {"capabilities": "x"})


def vhost(name: str, virtual_host: str, **how: Any) -> None:
    """What comes of opening this virtual host."""

    @case(f"conn/vhost-{name}")
    def _(scene: Scene) -> list[str]:
        client = arrived_at(scene, "open", **how)
        client.tell(0, "connection.open", virtual_host=virtual_host)
        return client.until("connection.open-ok") + client.drain()


vhost("missing", "nope")
vhost("empty", "")
vhost("slash-slash", "//")
vhost("missing-cr", "no\r\npe")
vhost("missing-no-capability", "nope", capabilities={})
vhost("quote", "it's")


def out_of_turn(name: str, stage: str, octets: bytes) -> None:
    """What comes of something else than is due at a stage of the handshake."""

    @case(f"conn/{name}")
    def _(scene: Scene) -> list[str]:
        client = arrived_at(scene, stage)
        client.send_bytes(octets)
        return client.drain(REFUSAL)


def _method(name: str, channel: int = 0, **arguments: Any) -> bytes:
    return method_frame(name, channel, **arguments)


out_of_turn("open-before-tune-ok", "tune", _method("connection.open", virtual_host="/"))
out_of_turn("open-before-start-ok", "start", _method("connection.open", virtual_host="/"))
out_of_turn("tune-ok-before-start-ok", "start", _method("connection.tune-ok"))
out_of_turn("secure-ok-unexpected", "start", _method("connection.secure-ok", response="x"))
out_of_turn("secure-ok-after-tune", "tune", _method("connection.secure-ok", response="x"))
out_of_turn("start-ok-twice", "tune", _method("connection.start-ok", **LOGIN))
out_of_turn("close-before-start-ok", "start", _method("connection.close", reply_code=200))
out_of_turn("close-before-tune-ok", "tune", _method("connection.close", reply_code=200))
out_of_turn("close-before-open", "open", _method("connection.close", reply_code=200))
out_of_turn("channel-open-before-start-ok", "start", _method("channel.open", 1))
out_of_turn("channel-open-before-open", "open", _method("channel.open", 1))
out_of_turn("heartbeat-before-start-ok", "start", frame(8, 0, b""))
out_of_turn("garbage-before-start-ok", "start", b"\xff" * 32)
out_of_turn("large-frame-before-start-ok", "start", frame(1, 0, b"\0\x0a\0\x0b" + bytes(9000)))

# --- an open connection ------------------------------------------------------------------------------------


def sent(case_id: str, *octets: bytes) -> None:
    """What comes of these bytes on an open connection with channel 1 open."""
    last(case_id, raw(*octets))


sent("conn/close-ok-then-eof", _method("connection.close", reply_code=200, reply_text="bye"))
sent("conn/close-with-channel-ids", _method("connection.close", reply_code=320, class_id=60, method_id=40))
sent(
    "conn/methods-after-close-ignored",
    _method("connection.close", reply_code=200),
    _method("basic.qos", 1),
)
sent("conn/open-twice", _method("connection.open", virtual_host="/"))
sent("conn/tune-ok-late", _method("connection.tune-ok"))
sent("conn/start-ok-late", _method("connection.start-ok", **LOGIN))
sent("conn/close-ok-unexpected", _method("connection.close-ok"))
last("conn/update-secret", call("connection.update-secret", ch=0, new_secret="s", reason="r"))
for _name in ("open", "close", "close-ok", "tune-ok", "start-ok", "secure-ok", "update-secret"):
    sent(f"conn/connection.{_name}-on-channel-1", _method(f"connection.{_name}", 1))
for _name in ("start", "secure", "tune", "open-ok", "blocked", "unblocked", "update-secret-ok"):
    sent(f"server-method/connection.{_name}", _method(f"connection.{_name}"))
for _name, _layout in METHODS.items():
    if not _name.startswith("connection.") and _name.endswith(("-ok", "-empty", ".return", ".deliver")):
        _content = frame(2, 1, content_header(0)) if _layout.content else b""
        sent(f"server-method/{_name}", _method(_name, 1), _content)
for _name in (
    "channel.open",
    "queue.declare",
    "basic.publish",
    "channel.close",
    "basic.ack",
    "tx.select",
    "channel.flow",
    "access.request",
):
    sent(f"channel0/{_name}", _method(_name))
sent("channel0/content-header", frame(2, 0, content_header(1)))
sent("channel0/content-body", frame(3, 0, b"x"))


@case("conn/heartbeat-1-silent-client")
def _(scene: Scene) -> list[str]:
    came = scene.client(tune={**TUNE, "heartbeat": 1}).drain(6.0)
    return [f"heartbeats={'heartbeat' in came}", *(text for text in came if text != "heartbeat")]


# Left out: how long a broker waits for close-ok (RabbitMQ: longer than 20 s).
@case("conn/frames-after-server-close-ignored")
def _(scene: Scene) -> list[str]:
    client = scene.client(answers=False)
    client.tell(1, "basic.qos", prefetch_size=1)
    came = client.until("connection.close")
    client.tell(1, "queue.declare", queue=scene.named("@q"))
    came += client.quiet()
    client.tell(0, "connection.close-ok")
    return came + client.drain() + queue(passive=1, on="b")(scene)


@case("conn/close-crossing")
def _(scene: Scene) -> list[str]:
    client = scene.client(answers=False)
    client.tell(1, "basic.qos", prefetch_size=1)
    came = client.until("connection.close")
    client.tell(0, "connection.close", reply_code=200)
    return came + client.drain()


# --- channels ----------------------------------------------------------------------------------------------

for _name in (
    "queue.declare",
    "basic.publish",
    "channel.close",
    "channel.close-ok",
    "basic.ack",
    "basic.qos",
):
    sent(f"chan/not-open-{_name}", _method(_name, 5))
sent("chan/not-open-header", frame(2, 5, content_header(1)))
sent("chan/not-open-body", frame(3, 5, b"x"))
sent("chan/open-twice", _method("channel.open", 1))
sent("chan/above-channel-max-default", _method("channel.open", 2048))
sent("chan/at-channel-max-default", _method("channel.open", 2047))
sent("chan/method-above-max-not-open", _method("queue.declare", 3000))


@case("chan/more-than-max-after-close")
def _(scene: Scene) -> list[str]:
    scene.client(tune={**TUNE, "channel_max": 1})
    return call("channel.close")(scene) + call("channel.open", ch=2)(scene)


@case("chan/open-ok-bytes")
def _(scene: Scene) -> list[str]:
    client = scene.client(channels=())
    client.tell(1, "channel.open")
    return [client.octets().hex()]


each("chan/close-and-reopen", REOPENED, queue())
each("chan/reopen-after-error", queue("@no", passive=1), call("channel.open"), queue())


@case("chan/close-ok-twice")
def _(scene: Scene) -> list[str]:
    call("channel.close")(scene)
    scene.a.tell(1, "channel.close-ok")
    return scene.a.drain()


each(
    "chan/unacked-requeued-at-error",
    filled(1),
    [get(no_ack=0), queue("@no", passive=1), call("channel.open")],
    get(),
)
each("chan/other-channels-live-on", [call("channel.open", ch=2)], queue("@no", passive=1), queue(ch=2))


def _closed_by_the_server(scene: Scene) -> tuple[RawClient, list[str]]:
    """A client that has been told that channel 1 is closed, and has not answered."""
    client = scene.client(answers=False)
    client.tell(1, "queue.declare", queue="nope", passive=1)
    return client, client.until("channel.close")


@case("chan/frames-after-server-close-ignored")
def _(scene: Scene) -> list[str]:
    client, came = _closed_by_the_server(scene)
    client.tell(1, "queue.declare", queue=scene.named("@q"))
    client.publish(1, routing_key="z")
    came += client.quiet()
    client.tell(1, "channel.close-ok")
    return came + call("channel.open")(scene) + queue(passive=1)(scene)


@case("chan/close-crossing")
def _(scene: Scene) -> list[str]:
    client, came = _closed_by_the_server(scene)
    client.tell(1, "channel.close", reply_code=200)
    return came + client.quiet()


@case("chan/open-while-server-close-pending")
def _(scene: Scene) -> list[str]:
    client, came = _closed_by_the_server(scene)
    client.tell(1, "channel.open")
    return came + client.drain()
