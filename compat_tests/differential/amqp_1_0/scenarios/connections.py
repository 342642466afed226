"""Scenarios of connections: headers, SASL, open and close."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.scenarios.play import Play, each, scenario
from compat_tests.scripted.amqp_1_0 import message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import PROTOCOL_HEADER, SASL_HEADER
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Symbol,
)


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
