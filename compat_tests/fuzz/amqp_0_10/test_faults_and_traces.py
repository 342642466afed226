"""Whatever bytes a 0-10 client sends, rules look at them without harm, and a trace shows them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given, strategies as st

from compat_tests.fuzz.amqp_0_10 import mutations
from compat_tests.fuzz.amqp_0_10.test_mutated_streams import feed, serves_0_10
from compat_tests.fuzz.checks import inconsistencies
from compat_tests.fuzz.mutations import Chunks, chunkings
from compat_tests.fuzz.profile import examples
from compat_tests.unit.faults.amqp_0_10.server import FaultServer
from fakeamqp.dialects import dialect_named
from fakeamqp.faults import Faults, Rule
from fakeamqp.faults.actions import malformations
from fakeamqp.trace import FrameEvent
from fakeamqp.trace.html import page
from fakeamqp.trace.json_form import event_to_json

_WAYS = sorted(malformations(["0-10"]))
_RECEIVED: tuple[Callable[[Rule], object], ...] = (
    lambda rule: rule.drop(),
    lambda rule: rule.delay(1),
    lambda rule: rule.hold(),
    lambda rule: rule.duplicate(),
    lambda rule: rule.replace(channel=1),
    lambda rule: rule.call(lambda unit: (unit.method, unit.properties, unit.body, str(unit), repr(unit))),
    lambda rule: rule.close_channel(404),
    lambda rule: rule.close_channel(1, when="after"),
    lambda rule: rule.close_connection(501, when="before"),
    lambda rule: rule.disconnect("reset"),
)
_SENT = (*_RECEIVED, *(lambda rule, how=how: rule.malform(how) for how in _WAYS if how != "struct-size"))
_COMMANDS: tuple[Callable[[Rule], object], ...] = (
    lambda rule: rule.exception("not-allowed"),
    lambda rule: rule.nack(),
    lambda rule: rule.replace(body=b"another", headers={"a": 1}),
    lambda rule: rule.delay(1).duplicate(),
)
_RULES = st.one_of(
    st.tuples(
        st.sampled_from(["*", "message.*", "session.*", "queue.*", "connection.*"]),
        st.just("received"),
        st.sampled_from(_RECEIVED),
    ),
    st.tuples(
        st.sampled_from(["message.transfer", "session.*", "execution.*"]),
        st.just("sent"),
        st.sampled_from(_SENT),
    ),
    st.tuples(st.just("message.transfer"), st.just("received"), st.sampled_from(_COMMANDS)),
)


def _install(faults: Faults, rules: list[tuple[Any, ...]]) -> None:
    for what, direction, act in rules:
        rule = faults.on(what, direction=direction).after(len(faults.rules))
        try:
            act(rule)
        except Exception:
            rule.remove()  # Not every action fits every subject; that is tested elsewhere.


@given(
    mutations.streams(),
    chunkings(),
    st.lists(_RULES, min_size=1, max_size=3),
    st.sampled_from(["rabbitmq-4.2", "spec"]),
)
@examples(300)
def test_mutated_streams(
    stream: bytes, sizes: Chunks, rules: list[tuple[Any, ...]], personality: str
) -> None:
    server = FaultServer(personality)
    _install(server.faults, rules)
    client = server.dial()
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
    serves_0_10(server)


def _check_trace(server: FaultServer) -> None:
    trace = server.recorder.trace()
    assert bool(trace.timeline()) == bool(len(trace))
    events = trace.events
    json.dumps([event_to_json(event) for event in events])
    assert page(events)
    framing = dialect_named("0-10")
    for event in events:
        if isinstance(event, FrameEvent) and event.protocol == "0-10" and event.size == len(event.payload):
            [(kind, channel, payload, _)] = framing.cut(
                framing.frame(event.type, event.channel, event.payload)
            )
            assert (kind, channel, payload) == (event.type, event.channel, event.payload)
