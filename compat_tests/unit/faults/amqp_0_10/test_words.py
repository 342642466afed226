"""What is said of rules about AMQP 0-10, and of those that cannot be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_10 import Session, x
from compat_tests.unit.faults.amqp_0_10.server import FaultServer
from fakeamqp.dialects import dialect_named, protocol_named, protocol_names
from fakeamqp.faults import FaultError, Faults
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

NONSENSE: list[tuple[Callable[[Faults], Any], str]] = [
    (
        lambda f: f.on("mesage.transfer"),
        "there is no method 'mesage.transfer'; did you mean 'message.transfer'?",
    ),
    (lambda f: f.on("sesion.*"), "there is no method 'sesion.*'; did you mean 'session.*'?"),
    (
        lambda f: f.on("message.transfer", protocol="0-9-1"),
        "there is no method 'message.transfer'",
    ),
    (lambda f: f.on("basic.publish", protocol="0-10"), "there is no method 'basic.publish'"),
    (lambda f: f.on("queue.declare", protocol="0_10"), "there is no protocol '0_10'; did you mean '0-10'"),
    (
        lambda f: f.on("confirm", protocol="0-10"),
        "there are no publisher confirms in 0-10: publishers learn of completion instead: "
        "on('session.completed', direction='sent')",
    ),
    (
        lambda f: f.on("message.transfer", destinaton="d"),
        "a message.transfer has no field 'destinaton'; did you mean 'destination'?",
    ),
    (
        lambda f: f.on("message.transfer", content_typ="d"),
        "a message.transfer has no field 'content_typ'; did you mean 'content_type'?",
    ),
    (
        lambda f: f.on("message.subscribe", alternate_exchange="d"),
        "a message.subscribe has no field 'alternate_exchange'",
    ),
    (lambda f: f.on("basic.publish", accept_mode=1), "a basic.publish has no field 'accept_mode'"),
    (
        lambda f: f.on("message.transfer", session=5),
        "session is compared with a str, a pattern or a function, not 5",
    ),
    (
        lambda f: f.on("message.acquire", direction="sent"),
        "message.acquire is never sent by a broker, only received",
    ),
    (
        lambda f: f.on("message.accept", part="header"),
        "part='header' is for received methods with a content, not a message.accept",
    ),
    (
        lambda f: f.on("basic.publish").exception(404),
        "exception() is for commands of AMQP 0-10, not for a basic.publish: use close_channel()",
    ),
    (
        lambda f: f.on("message.transfer").exception("notfound"),
        "there is no error code 'notfound'; did you mean 'not-found'?",
    ),
    (
        lambda f: f.on("message.transfer").exception(404, field_index=256),
        "field_index is a number from 0 to 255, not 256",
    ),
    (
        lambda f: f.on("session.attach").exception(404),
        "a session.attach is a control; exceptions are for commands: use close_connection()",
    ),
    (
        lambda f: f.on("message.transfer", direction="sent").exception(404),
        "exception() is for received commands; a message.transfer is sent by the broker",
    ),
    (
        lambda f: f.on("message.transfer", direction="sent").nack(),
        "nack() is for received publishes and for confirms; a message.transfer is sent by the broker",
    ),
    (
        lambda f: f.on("message.accept").nack(),
        "nack() is for message.transfer, not for a message.accept",
    ),
    (
        lambda f: f.on("message.transfer").return_message(),
        "return_message() is for basic.publish, not for a message.transfer",
    ),
    (
        lambda f: f.on("message.transfer", direction="sent", protocol="0-10").malform("bad-frame-end"),
        "malform cannot be 'bad-frame-end'",
    ),
    (
        lambda f: f.on("execution.result", direction="sent").malform("struct-size"),
        "malform('struct-size') is for methods with a content, such as ",
    ),
    (
        lambda f: f.on("message.transfer").replace(priority="high"),
        "no content can have priority='high': ",
    ),
    (
        lambda f: f.on("message.transfer").replace(accept_mode="none"),
        "a message.transfer cannot have accept_mode='none': ",
    ),
    (
        lambda f: f.on("message.transfer").replace(routing_kye="x"),
        "a message.transfer has no 'routing_kye' to replace; did you mean 'routing_key'?",
    ),
    (
        lambda f: f.on("message.accept").replace(body=b"x"),
        "a message.accept has no content: replace() can",
    ),
]


@pytest.mark.parametrize(("ask", "text"), NONSENSE, ids=[text[:60] for _, text in NONSENSE])
def test_invalid_rule_about_0_10_is_an_error_that_explains_the_mistake(
    faults: Faults, ask: Callable[[Faults], Any], text: str
) -> None:
    with pytest.raises(FaultError) as caught:
        ask(faults)
    assert str(caught.value).startswith(text)


def test_rule_about_0_10_is_described_by_a_sentence(faults: Faults) -> None:
    rule = faults.on("message.transfer", queue="orders", session="shop").exception("not-allowed").once()
    assert str(rule) == (
        "when a message.transfer with queue 'orders' and session 'shop' comes: "
        "answer it with the exception not-allowed (once at most)"
    )
    rule = faults.on("session.completed", direction="sent", protocol="0-10").malform("wrong-track")
    assert str(rule) == "when a session.completed is to be sent: malform it: on the wrong track"


def test_method_names_of_a_protocol_are_the_kinds_of_its_dialect() -> None:
    for protocol in protocol_names():
        assert protocol_named(protocol).method_names == tuple(dialect_named(protocol).kinds)


def test_a_rule_about_0_9_1_does_not_load_0_10() -> None:
    code = (
        "import sys, fakeamqp; broker = fakeamqp.Broker();"
        "broker.faults.on('basic.publish', queue='q').nack(); broker.faults.on('heartbeat').drop();"
        "broker.faults.on('confirm').hold(); broker.faults.on('basic.deliver').malform('garbage');"
        "print([name for name in sys.modules if 'amqp_0_10.commands' in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_near_miss_of_a_0_10_rule_names_the_field_that_differs(session: Session, faults: Faults) -> None:
    rule = faults.on("message.transfer", routing_key="orders.#", session="shop").drop()
    session.publish(b"one")
    assert list(rule.near_misses()) == ["message.transfer: routing_key is 'q', not 'orders.#'"]
    other = faults.on("message.subscribe", queue="q", destination="e").drop()
    session.subscribe("q")
    assert list(other.near_misses()) == [
        "message.subscribe queue='q' destination='d': destination is 'd', not 'e'"
    ]


def test_sending_a_method_or_property_unknown_to_the_protocol_is_an_error(
    server: FaultServer, faults: Faults
) -> None:
    server.session(b"s")
    with pytest.raises(FaultError, match=r"bytes or a method of AMQP 0-10, not BasicAck"):
        faults.send(m.BasicAck())
    with pytest.raises(FaultError, match=r"there is no property 'prio'"):
        faults.send(x.MessageTransfer(), prio=1)
    server.client()
    with pytest.raises(FaultError, match="0-9-1 has no property 'ttl'"):
        faults.send(m.BasicDeliver(), ttl=1)
