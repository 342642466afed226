"""Lines of the error of a wait that timed out: hints, what the broker holds, and the latest events.

A hint says why the wait cannot succeed: the clock stands still, the memory alarm blocks publishers, the wait
itself blocks the clients, a reset has removed a queue, or a message never reaches its delivery limit.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fakeamqp.model.queues import Queue
    from fakeamqp.model.state import BrokerState

LATEST_EVENTS = "the latest events of the broker:"
"""The line before the events of a report."""
_MOST_SHOWN = 10
_LONGEST_BODY = 40
_LATEST = 15
"""How many events of the trace a report shows."""


def loop_hint(awaitable: str) -> str:
    """What a wait should `await` instead, such as "wait_for.aio"; "" outside of a coroutine."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:
        return ""
    return (
        "The test waited inside a coroutine, and so blocked the event loop: clients in this loop could not "
        f"go on. Use `await ...{awaitable}(...)`"
    )


def wait_hints(state: BrokerState, awaitable: str = "") -> str:
    """Lines to add to the error of a wait or an expectation: what holds the broker or its clients up; or "".

    `awaitable` is as in `loop_hint`, "" for a call that has not waited. Raises BrokerError if the broker was
    not started, so that nothing can have happened.
    """
    state.check_started()
    texts = (
        loop_hint(awaitable) if awaitable else "",
        "the broker is stopped" if state.stage == "stopped" else "",
        *state.resets.hints(),
        *_uncounted_returns(state),
        state.clock.hint(),
        _memory_hint(state),
    )
    return "".join(f"\n{text}" for text in texts if text)


def _memory_hint(state: BrokerState) -> str:
    memory = state.memory
    if not memory.alarm:
        return ""
    return (
        f"the memory alarm blocks publishers: {memory.total} bytes are in use, more than memory_limit "
        f"({memory.limit}), most in {memory.largest_holder()}; consume or purge messages, or make the broker "
        "with a larger memory_limit, or with None for no limit"
    )


def span(state: BrokerState, timeout: float) -> str:
    """How long a wait was, for its error: a broker that is stopped ends all waits early."""
    if state.stage == "stopped":
        return f"less than {timeout:g} s (the broker is stopped)"
    return f"{timeout:g} s"


_RETURNS = {
    "released": "basic.nack(requeue=True), basic.recover",
    "timed out": "the consumer timeout",
    "failed": "basic.reject(requeue=True)",
    "lost": "a channel or connection that ends without an ack",
}
"""How a client returns a message, by the outcome of the delivery."""
_MOST_RETURNS = 2
"""How often a message may return without a failure before a hint says so."""


def _uncounted_returns(state: BrokerState) -> Iterator[str]:
    """A hint about each quorum queue that delivers a message again and again below its delivery limit."""
    choices = state.personality.quorum
    if choices.limit_counts != "failures":
        return
    from fakeamqp.model.queues.quorum.queue import QuorumQueue

    counted = [how for ending, how in _RETURNS.items() if ending in choices.failures]
    others = [how for how in _RETURNS.values() if how not in counted]
    for queue in _queues(state):
        queued = queue.most_returned() if isinstance(queue, QuorumQueue) else None
        if queued is None or queued.returns - queued.failures < _MOST_RETURNS:
            continue
        limit = queue.delivery_limit  # type: ignore[attr-defined]
        yield (
            f"quorum queue {queue.name!r} redelivers {queued.message.body[:_LONGEST_BODY]!r}: its "
            f"x-acquired-count is {queued.returns} and its x-delivery-count {queued.failures}. In "
            f"{state.personality.name} only failed deliveries count towards the delivery limit "
            f"({'none here' if limit is None else f'{limit:g}'}): {' and '.join(counted)} count, and "
            f"{', '.join(others)} do not. Return it with basic.reject(requeue=True), or dead-letter it with "
            "requeue=False"
        )


def _queues(state: BrokerState) -> list[Queue]:
    return [queue for each in state.virtual_hosts.values() for queue in each.queues.values()]


def wait_report(state: BrokerState, awaitable: str = "") -> str:
    """Those of `wait_hints`, what the broker holds, and the latest events: for a wait that timed out."""
    hints = wait_hints(state, awaitable)
    lines = ["", *_held(state)]
    events = "" if state.latest_events is None else state.latest_events(_LATEST)
    if events:
        lines += [LATEST_EVENTS, events]
    return hints + "\n".join(lines)


def _held(state: BrokerState) -> Iterator[str]:
    """What the broker holds: the queues, those with messages first, and the connections."""
    from fakeamqp.inspect.topology import connection_view, queue_line

    queues = sorted(
        _queues(state), key=lambda queue: not (len(queue.ready) or queue.unacked or queue.parked_count)
    )
    yield (
        "the broker holds:" if queues or state.connections else "the broker holds no queue and no connection"
    )
    yield from first_of([queue_line(queue) for queue in queues])
    yield from first_of([repr(connection_view(each, state)) for each in state.connections])


def first_of(texts: Sequence[str], indent: str = "  ") -> Iterator[str]:
    """The first texts, a line each, and how many more there are."""
    yield from (indent + text for text in texts[:_MOST_SHOWN])
    if len(texts) > _MOST_SHOWN:
        yield f"{indent}... and {len(texts) - _MOST_SHOWN} more"
