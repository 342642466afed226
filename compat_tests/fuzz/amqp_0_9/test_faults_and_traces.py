"""Whatever bytes a client of 0-9 or 0-8 sends, rules look at them without harm, and a trace shows them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import given, strategies as st

from compat_tests.fuzz import mutations
from compat_tests.fuzz.amqp_0_9.recordings import recordings
from compat_tests.fuzz.checks import inconsistencies, serves_others
from compat_tests.fuzz.mutations import Chunks, chunkings
from compat_tests.fuzz.profile import examples
from compat_tests.fuzz.streams import Recording
from compat_tests.fuzz.test_mutated_streams import feed
from compat_tests.unit.faults.amqp_0_9.server import FaultServer
from fakeamqp.dialects import dialect_named
from fakeamqp.faults import Faults, Rule
from fakeamqp.faults.actions import malformations
from fakeamqp.trace import FrameEvent
from fakeamqp.trace.html import page
from fakeamqp.trace.json_form import event_to_json

_RECEIVED: tuple[Callable[[Rule], object], ...] = (
    lambda rule: rule.drop(),
    lambda rule: rule.delay(1),
    lambda rule: rule.hold(),
    lambda rule: rule.duplicate(),
    lambda rule: rule.replace(channel=2),
    lambda rule: rule.call(lambda unit: (unit.method, unit.properties, unit.body, str(unit), repr(unit))),
    lambda rule: rule.close_channel(404),
    lambda rule: rule.close_channel(404, when="after"),
    lambda rule: rule.close_connection(501, when="before"),
    lambda rule: rule.disconnect("reset"),
)
_SENT = (*_RECEIVED, *(lambda rule, how=how: rule.malform(how) for how in sorted(malformations(["0-9"]))))
_PUBLISHES: tuple[Callable[[Rule], object], ...] = (
    lambda rule: rule.nack(),
    lambda rule: rule.replace(body=b"another", headers={"a": 1}, priority=3),
    lambda rule: rule.replace(routing_key=lambda key: key[::-1]),
    lambda rule: rule.delay(1).duplicate(),
)
_RULES = st.one_of(
    st.tuples(
        st.sampled_from(["*", "basic.*", "message.*", "file.*", "stream.*", "queue.*", "connection.*"]),
        st.just("received"),
        st.sampled_from(_RECEIVED),
    ),
    st.tuples(
        st.sampled_from(["*", "message.*", "*.deliver", "basic.get-ok", "channel.*"]),
        st.just("sent"),
        st.sampled_from(_SENT),
    ),
    st.tuples(
        st.sampled_from(["message.transfer", "basic.publish"]),
        st.just("received"),
        st.sampled_from(_PUBLISHES),
    ),
)


@cache
def _recordings(strict: bool) -> tuple[Recording, ...]:
    return recordings(strict=strict)


def _streams(personality: str) -> st.SearchStrategy[tuple[str, bytes]]:
    known = _recordings(personality == "spec")
    return st.tuples(st.just(personality), mutations.streams(known))


def _install(faults: Faults, rules: list[tuple[Any, ...]]) -> None:
    for what, direction, act in rules:
        rule = faults.on(what, direction=direction).after(len(faults.rules))
        try:
            act(rule)
        except Exception:
            rule.remove()  # Not every action fits every subject; that is tested elsewhere.


@given(
    st.sampled_from(["rabbitmq-4.2", "spec"]).flatmap(_streams),
    chunkings(),
    st.lists(_RULES, min_size=1, max_size=3),
)
@examples(300)
def test_mutated_streams(
    conversation: tuple[str, bytes], sizes: Chunks, rules: list[tuple[Any, ...]]
) -> None:
    personality, stream = conversation
    server = FaultServer(personality, tickets=personality == "spec")
    _install(server.faults, rules)
    client = server.connect()
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
    serves_others(server)


def _check_trace(server: FaultServer) -> None:
    trace = server.recorder.trace()
    assert bool(trace.timeline()) == bool(len(trace))
    events = trace.events
    json.dumps([event_to_json(event) for event in events])
    assert page(events)
    for event in events:
        if isinstance(event, FrameEvent) and event.size == len(event.payload):
            framing = dialect_named(event.protocol)
            octets = framing.frame(event.type, event.channel, event.payload)
            assert framing.cut(octets) == [(event.type, event.channel, event.payload, event.size)]
