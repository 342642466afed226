"""Programs in which much happens to few queues."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st

from compat_tests.programs import program as p
from fakeamqp.model.queues import QUEUE_TYPES

__all__ = ["QUEUES", "programs"]

QUEUES = ("a", "b", "c", "d")
EXCHANGES = {"fan": "fanout", "dir": "direct"}
MISSING = "no"
"""A queue and an exchange that there are not."""
TAGS = ("x", "y", "z")
TYPES = [name for name in ("classic", "quorum") if name in QUEUE_TYPES]

# Powers of two divide them, so that sums of them are exact on every clock.
TIMES = (0, 125, 250, 500, 1000, 1125, 2000)
WAITS = (0.125, 0.25, 0.5, 1, 1, 2, 5)

Arguments = dict[str, Any]


def _some(*names: str) -> st.SearchStrategy[str]:
    return st.sampled_from(names)


_LIMITS = st.one_of(
    st.fixed_dictionaries({"x-max-length": st.integers(0, 3)}),
    st.fixed_dictionaries({"x-max-length-bytes": st.integers(0, 20)}),
)


@cache
def _dead_letters(names: tuple[str, ...]) -> st.SearchStrategy[Arguments]:
    """Mostly to one of these queues."""
    key = "x-dead-letter-routing-key"
    return st.one_of(
        *[st.fixed_dictionaries({"x-dead-letter-exchange": st.just(""), key: st.sampled_from(names)})] * 4,
        st.fixed_dictionaries(
            {"x-dead-letter-exchange": _some("", *EXCHANGES, *EXCHANGES, MISSING)},
            optional={key: _some("k", MISSING)},
        ),
    )


_FEATURES: dict[str, list[st.SearchStrategy[Arguments]]] = {
    "classic": [
        st.just({}),
        st.fixed_dictionaries({"x-message-ttl": st.sampled_from(TIMES)}),
        st.fixed_dictionaries({"x-expires": st.sampled_from((500, 1125, 4000))}),
        _LIMITS,
        st.builds(
            lambda limit, overflow: {**limit, "x-overflow": overflow},
            _LIMITS,
            _some("drop-head", "reject-publish", "reject-publish-dlx"),
        ),
        st.fixed_dictionaries({"x-max-priority": st.integers(1, 3)}),
        st.just({"x-single-active-consumer": True}),
    ],
}


_FEATURE_LISTS = {
    kind: st.lists(st.sampled_from(features), min_size=1, max_size=2) for kind, features in _FEATURES.items()
}
_BOUND = st.lists(st.sampled_from(QUEUES), min_size=1, max_size=3, unique=True)


@st.composite
def _declarations(draw: Callable[..., Any], name: str, names: tuple[str, ...]) -> p.Declare:
    """One of these queues, that mostly dead-letters and has up to two other features."""
    kind = draw(st.sampled_from(TYPES))
    arguments: Arguments = {} if kind == "classic" else {"x-queue-type": kind}
    for feature in draw(_FEATURE_LISTS[kind]):
        arguments.update(draw(feature))
    if draw(st.integers(0, 3)):
        arguments.update(draw(_dead_letters(names)))
    return p.Declare(name, arguments)


@cache
def _operations(
    names: tuple[str, ...], exchanges: tuple[str, ...]
) -> dict[str, st.SearchStrategy[p.Operation]]:
    """What may be done with these queues, by what it is for."""
    queue = st.sampled_from(names)
    channel = st.integers(1, 2)
    pick = st.sampled_from((0, 0, 0, 1, 2, -1))
    often = st.booleans()
    seldom = st.integers(0, 7).map(lambda number: number == 7)
    return {
        "publish": st.builds(
            p.Publish,
            queue,
            expiration=st.sampled_from((None, None, None, *TIMES)),
            priority=st.sampled_from((None, 0, 1, 2, 4)),
            confirm=often,
            size=st.sampled_from((0, 0, 0, 9)),
        ),
        "route": st.builds(
            p.Publish, _some("k", "l"), exchange=_some(*(exchanges or [""])), confirm=often, mandatory=often
        ),
        "get": st.builds(p.Get, queue, no_ack=seldom, channel=channel),
        "consume": st.builds(
            p.Consume,
            queue,
            _some(*TAGS),
            prefetch=st.sampled_from((1, 1, 2, 0)),
            no_ack=seldom,
            priority=st.sampled_from((0, 0, 1)),
            channel=channel,
        ),
        "ack": st.builds(p.Ack, pick, multiple=often, channel=channel),
        "reject": st.builds(p.Reject, pick, requeue=often, channel=channel),
        "nack": st.builds(p.Nack, pick, multiple=often, requeue=often, channel=channel),
        "advance": st.builds(p.Advance, st.sampled_from(WAITS)),
        "withdraw": st.one_of(
            st.builds(p.Cancel, _some(*TAGS)),
            st.builds(p.Recover, channel),
            st.builds(p.CloseChannel, channel),
        ),
        "manage": st.one_of(
            st.builds(p.Count, queue),
            st.builds(p.Purge, queue),
            st.builds(p.Delete, queue, if_unused=seldom, if_empty=seldom),
            *(_declarations(name, names) for name in names),
        ),
        "astray": st.one_of(
            st.builds(p.Count, st.just(MISSING)),
            st.builds(p.Purge, st.just(MISSING)),
            st.builds(p.Delete, st.just(MISSING)),
            st.builds(p.Get, st.just(MISSING), channel=channel),
            st.builds(p.Consume, st.just(MISSING), _some(*TAGS), channel=channel),
            st.builds(p.Bind, queue, st.just(MISSING)),
            st.builds(p.Publish, queue, exchange=st.just(MISSING), confirm=often),
            st.builds(p.Publish, st.just(MISSING), confirm=often, mandatory=often),
            st.builds(p.Ack, st.none(), channel=channel),
        ),
    }


_WEIGHTS = {
    "nothing": 1,
    "publish": 9,
    "route": 2,
    "get": 3,
    "consume": 3,
    "ack": 3,
    "reject": 3,
    "nack": 3,
    "advance": 4,
    "withdraw": 2,
    "manage": 2,
    "astray": 1,
}
_CHOICES = st.sampled_from([name for name, weight in _WEIGHTS.items() for _ in range(weight)])


@st.composite
def programs(draw: Callable[..., Any], shortest: int = 10, longest: int = 40) -> p.Program:
    """A topology and what happens to it. That may be nothing, so that programs can be made shorter."""
    names = QUEUES[: draw(st.integers(1, len(QUEUES)))]
    exchanges = draw(st.sampled_from(((), (), ("fan",), ("fan", "dir"))))
    program: p.Program = [p.DeclareExchange(exchange, EXCHANGES[exchange]) for exchange in exchanges]
    program += [draw(_declarations(name, names)) for name in names]
    for exchange in exchanges:
        for name in draw(_BOUND):
            if name in names:
                program.append(p.Bind(name, exchange, draw(_some("k", "k", "l"))))
    operations = _operations(names, exchanges)
    for choice in draw(st.lists(_CHOICES, min_size=shortest, max_size=longest)):
        if choice != "nothing":
            program.append(draw(operations[choice]))
    return program
