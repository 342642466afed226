"""What is said of rules about AMQP 0-9, and of those that cannot be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.scripted.requesting import Requester
from fakeamqp.dialects import protocol_names
from fakeamqp.faults import FaultError, Faults
from fakeamqp.faults.chaos import FAULTS

NONSENSE: list[tuple[Callable[[Faults], Any], str]] = [
    (
        lambda f: f.on("message.transfr", protocol="0-9"),
        "there is no method 'message.transfr'; did you mean 'message.transfer'?",
    ),
    (lambda f: f.on("tunel.*"), "there is no method 'tunel.*'; did you mean 'tunnel.*'?"),
    (
        lambda f: f.on("message.transfer", protocol="0-8"),
        "there is no method 'message.transfer'",
    ),
    (lambda f: f.on("basic.nack", protocol="0-8"), "there is no method 'basic.nack'"),
    (lambda f: f.on("queue.declare", protocol="0_9"), "there is no protocol '0_9'; did you mean '0-9'"),
    (lambda f: f.on("confirm", protocol="0-8"), "there are no publisher confirms in 0-8"),
    (
        lambda f: f.on("file.open", identifer="f"),
        "a file.open has no field 'identifer'; did you mean 'identifier'?",
    ),
    (
        lambda f: f.on("stream.deliver", direction="received"),
        "stream.deliver is never received by a broker, only sent",
    ),
    (
        lambda f: f.on("message.transfer", protocol="0-9").exception(404),
        "exception() is for commands of AMQP 0-10, not for a message.transfer: use close_channel()",
    ),
    (
        lambda f: f.on("message.transfer", protocol="0-9").return_message(),
        "return_message() is for basic.publish, not for a message.transfer",
    ),
    (
        lambda f: f.on("message.consume", protocol="0-9").replace(body=b"x"),
        "a message.consume has no content: replace() can change its fields only",
    ),
    (
        lambda f: f.on("message.transfer", protocol="0-9").replace(ttl="soon"),
        "a message.transfer cannot have ttl='soon': ",
    ),
    (
        lambda f: f.on("message.transfer", protocol="0-9").replace(priority="high"),
        "no content can have priority='high': ",
    ),
    (
        lambda f: f.on("access.request").nack(),
        "nack() is for basic.publish and message.transfer, not for an access.request",
    ),
]


@pytest.mark.parametrize(("ask", "text"), NONSENSE, ids=[text[:60] for _, text in NONSENSE])
def test_invalid_rule_about_0_9_is_an_error_that_explains_the_mistake(
    faults: Faults, ask: Callable[[Faults], Any], text: str
) -> None:
    with pytest.raises(FaultError) as caught:
        ask(faults)
    assert str(caught.value).startswith(text)


def test_rule_about_0_9_is_described_by_a_sentence(faults: Faults) -> None:
    rule = faults.on("message.transfer", queue="orders", protocol="0-9").nack().once()
    assert str(rule) == "when a message.transfer with queue 'orders' comes: nack it (once at most)"
    rule = faults.on("file.deliver", direction="sent").malform("bad-frame-end")
    assert str(rule).startswith("when a file.deliver is to be sent: malform it: the last byte of its last")


def test_near_miss_of_a_0_9_rule_names_the_field_that_differs(requester: Requester, faults: Faults) -> None:
    rule = faults.on("message.transfer", routing_key="orders.#").drop()
    requester.publish("q", b"one")
    assert list(rule.near_misses()) == [
        "message.transfer exchange='' routing_key='q' destination='': routing_key is 'q', not 'orders.#'"
    ]


def test_a_rule_about_0_9_1_does_not_load_0_9() -> None:
    code = (
        "import sys, fakeamqp; broker = fakeamqp.Broker();"
        "broker.faults.on('basic.publish', queue='q').drop(); broker.faults.on('heartbeat').drop();"
        "broker.faults.on('confirm').hold(); broker.faults.on('basic.get', 'basic.consume').delay(1);"
        "print([name for name in sys.modules if 'amqp_0_9.methods' in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_chaos_refuses_publishes_only_in_protocols_that_can_answer_so() -> None:
    assert [name for name in protocol_names() if FAULTS["nack"].happens_in(name)] == ["0-9-1", "0-9"]
    assert [name for name in protocol_names() if FAULTS["rejected-transfer"].happens_in(name)] == ["0-9"]
