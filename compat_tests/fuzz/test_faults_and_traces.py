"""Rules look without harm at whatever bytes a client sends, of any protocol, and a trace shows them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz import mutations
from compat_tests.fuzz.amqp_0_9.recordings import recordings
from compat_tests.fuzz.checks import inconsistencies
from compat_tests.fuzz.mutations import chunkings
from compat_tests.fuzz.profile import examples
from compat_tests.fuzz.subjects import SUBJECTS, Subject
from compat_tests.fuzz.test_mutated_streams import feed
from compat_tests.unit.faults.amqp_0_9.server import FaultServer
from compat_tests.unit.faults.amqp_0_10.server import FaultServer as FaultServer010
from compat_tests.unit.faults.amqp_1_0.server import FaultServer as FaultServer10
from fakeamqp.dialects import dialect_named
from fakeamqp.faults import Faults, Rule
from fakeamqp.faults.actions import malformations
from fakeamqp.trace import FrameEvent
from fakeamqp.trace.html import page
from fakeamqp.trace.json_form import event_to_json

Act = Callable[[Rule], object]


def _received(code: int, channel: int) -> tuple[Act, ...]:
    return (
        lambda rule: rule.drop(),
        lambda rule: rule.delay(1),
        lambda rule: rule.hold(),
        lambda rule: rule.duplicate(),
        lambda rule: rule.replace(channel=channel),
        lambda rule: rule.call(lambda unit: (unit.method, unit.properties, unit.body, str(unit), repr(unit))),
        lambda rule: rule.close_channel(404),
        lambda rule: rule.close_channel(code, when="after"),
        lambda rule: rule.close_connection(501, when="before"),
        lambda rule: rule.disconnect("reset"),
    )


def _malforms(protocol: str) -> tuple[Act, ...]:
    ways = sorted(set(malformations([protocol])) - {"struct-size"})
    return tuple(lambda rule, how=how: rule.malform(how) for how in ways)


def _rules(*rows: tuple[Sequence[str], str, tuple[Act, ...]]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    known = [
        st.tuples(st.sampled_from(names), st.just(direction), st.sampled_from(acts))
        for names, direction, acts in rows
    ]
    return st.lists(st.one_of(known), min_size=1, max_size=3)


RULES = {
    "0-9": _rules(
        (
            ["*", "basic.*", "message.*", "file.*", "stream.*", "queue.*", "connection.*"],
            "received",
            _received(404, 2),
        ),
        (
            ["*", "message.*", "*.deliver", "basic.get-ok", "channel.*"],
            "sent",
            (*_received(404, 2), *_malforms("0-9")),
        ),
        (
            ["message.transfer", "basic.publish"],
            "received",
            (
                lambda rule: rule.nack(),
                lambda rule: rule.replace(body=b"another", headers={"a": 1}, priority=3),
                lambda rule: rule.replace(routing_key=lambda key: key[::-1]),
                lambda rule: rule.delay(1).duplicate(),
            ),
        ),
    ),
    "0-10": _rules(
        (["*", "message.*", "session.*", "queue.*", "connection.*"], "received", _received(1, 1)),
        (
            ["message.transfer", "session.*", "execution.*"],
            "sent",
            (*_received(1, 1), *_malforms("0-10")),
        ),
        (
            ["message.transfer"],
            "received",
            (
                lambda rule: rule.exception("not-allowed"),
                lambda rule: rule.nack(),
                lambda rule: rule.replace(body=b"another", headers={"a": 1}),
                lambda rule: rule.delay(1).duplicate(),
            ),
        ),
    ),
    "1-0": _rules(
        (["*", "transfer", "attach", "flow", "disposition", "begin", "open"], "received", _received(404, 1)),
        (
            ["*", "transfer", "attach", "flow", "disposition", "end", "close"],
            "sent",
            (*_received(404, 1), *_malforms("1-0")),
        ),
        (
            ["transfer"],
            "received",
            (
                lambda rule: rule.nack(),
                lambda rule: rule.return_message(),
                lambda rule: rule.replace(body=b"another", headers={"a": 1}),
                lambda rule: rule.delay(1).duplicate(),
            ),
        ),
    ),
}


def _install(faults: Faults, rules: list[tuple[Any, ...]]) -> None:
    for what, direction, act in rules:
        rule = faults.on(what, direction=direction).after(len(faults.rules))
        try:
            act(rule)
        except Exception:
            rule.remove()  # Not every action fits every subject; that is tested elsewhere.


@pytest.mark.parametrize("subject", [subject for subject in SUBJECTS if subject.protocol != "0-9-1"], ids=str)
def test_mutated_streams(subject: Subject) -> None:
    personality = "spec" if subject.strict else "rabbitmq-4.2"
    # Here clients say also what the broker refuses in the end.
    said = recordings(strict=subject.strict) if subject.protocol == "0-9" else subject.recordings

    @given(mutations.streams(said, subject.framing), chunkings(), RULES[subject.protocol])
    @examples(150)
    def run(stream: bytes, sizes: mutations.Chunks, rules: list[tuple[Any, ...]]) -> None:
        server: Any = FaultServer010(personality)
        if subject.protocol == "0-9":
            server = FaultServer(personality, tickets=subject.strict)
        elif subject.protocol == "1-0":
            server = FaultServer10(subject.personality)
        _install(server.faults, rules)
        client = subject.connect(server)
        for _ in range(2):
            try:
                feed(client, stream, sizes, reads=False)
            finally:
                client.connection.pending()
        server.advance(3)
        client.connection.pending()
        assert not (problems := inconsistencies(server.state)), problems
        for rule in server.faults.rules:
            error = getattr(rule, "error", None)
            assert error is None, f"{rule}: {error!r}"
        server.faults.clear()
        client.drop()
        server.settle()
        assert not (problems := inconsistencies(server.state)), problems
        assert server.state.tap is server.recorder
        _check_trace(server)
        for session in list(server.state.sessions.values()):
            session.end()
        subject.serves_next(server)

    run()


def _check_trace(server: Any) -> None:
    trace = server.recorder.trace()
    assert bool(trace.timeline()) == bool(len(trace))
    events = trace.events
    json.dumps([event_to_json(event) for event in events])
    assert page(events)
    for event in events:
        if isinstance(event, FrameEvent) and event.size == len(event.payload):
            framing = dialect_named(event.protocol)
            octets = framing.frame(event.type, event.channel, event.payload)
            [(kind, channel, payload, size)] = framing.cut(octets)
            assert (kind, channel, payload) == (event.type, event.channel, event.payload)
            assert size == event.size or event.protocol == "0-10"
