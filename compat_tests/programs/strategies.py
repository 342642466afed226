"""Programs in which much happens to few queues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import strategies as st

from compat_tests.programs import program as p

__all__ = ["QUEUES", "REAL", "VIRTUAL", "Kind", "programs"]

QUEUES = ("a", "b", "c", "d")
EXCHANGES = {"fan": "fanout", "dir": "direct"}
MISSING = "no"
"""A queue and an exchange that there are not."""
TAGS = ("x", "y", "z")
Arguments = dict[str, Any]
Operations = dict[str, st.SearchStrategy[p.Operation]]


@dataclass(frozen=True)
class Kind:
    """What programs are to be like: types of queues, times to live, pauses, and who shares a channel.

    Where channels are not shared, what is received from a queue has one of its own.
    """

    types: tuple[str, ...]
    times: tuple[int, ...]
    waits: tuple[float, ...]
    expiries: tuple[int, ...]
    shares_channels: bool

    def channel(self, queue: str) -> st.SearchStrategy[int]:
        """Where messages of a queue are received."""
        return st.integers(1, 2) if self.shares_channels else st.just(_own_channel(queue))

    def any_channel(self, names: tuple[str, ...]) -> st.SearchStrategy[int]:
        """Where messages of any of these queues are received."""
        return st.integers(1, 2) if self.shares_channels else st.sampled_from([*map(_own_channel, names)])


def _own_channel(queue: str) -> int:
    return 1 + (QUEUES.index(queue) if queue in QUEUES else 0)


VIRTUAL = Kind(
    types=("classic", "classic", "quorum"),
    # Powers of two divide all times, so that sums of them are exact on every clock.
    times=(0, 125, 250, 500, 1000, 1125, 2000),
    waits=(0.125, 0.25, 0.5, 1, 1, 2, 5),
    expiries=(500, 1125, 4000),
    shares_channels=True,
)
"""Time is the test's, and all happens in turn."""
REAL = Kind(
    types=("classic",),
    times=(250, 250, 750, 1250),
    waits=(0.5, 0.5, 1, 1.5),
    expiries=(750, 1750),
    shares_channels=False,
)
"""Time passes, so nothing is done near a deadline; and what two queues send at once has no order."""


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
        _LIMITS,
        st.builds(
            lambda limit, overflow: {**limit, "x-overflow": overflow},
            _LIMITS,
            _some("drop-head", "reject-publish", "reject-publish-dlx"),
        ),
        st.fixed_dictionaries({"x-max-priority": st.integers(1, 3)}),
        *[st.just({"x-single-active-consumer": True})] * 2,
    ],
    "quorum": [
        st.just({}),
        _LIMITS,
        st.fixed_dictionaries({"x-delivery-limit": st.integers(0, 2)}),
    ],
}


@cache
def _features(queue_type: str, kind: Kind) -> st.SearchStrategy[list[Arguments]]:
    expiries = st.fixed_dictionaries({"x-expires": st.sampled_from(kind.expiries)})
    features = [
        *([expiries] * 2 if queue_type == "classic" else []),
        st.fixed_dictionaries({"x-message-ttl": st.sampled_from(kind.times)}),
        *_FEATURES[queue_type],
    ]
    return st.lists(st.sampled_from(features).flatmap(lambda each: each), min_size=1, max_size=2)


_BOUND = st.lists(st.sampled_from(QUEUES), min_size=1, max_size=3, unique=True)


@st.composite
def _declarations(draw: Callable[..., Any], name: str, names: tuple[str, ...], kind: Kind) -> p.Declare:
    """One of these queues, that mostly dead-letters and has up to two other features."""
    queue_type = draw(_some(*kind.types))
    arguments: Arguments = {} if queue_type == "classic" else {"x-queue-type": queue_type}
    for feature in draw(_features(queue_type, kind)):
        arguments.update(feature)
    if draw(st.integers(0, 3)):
        arguments.update(draw(_dead_letters(names)))
    return p.Declare(name, arguments)


@cache
def _operations(names: tuple[str, ...], exchanges: tuple[str, ...], kind: Kind) -> Operations:
    """What may be done with these queues, by what it is for."""
    busy = (names[0], names[0], *names)
    """More happens to the first."""
    queue = st.sampled_from(busy)
    channel = kind.any_channel(names)
    pick = st.sampled_from((0, 0, 0, 1, 2, -1))
    often = st.booleans()
    seldom = st.integers(0, 7).map(lambda number: number == 7)
    return {
        "publish": st.builds(
            p.Publish,
            queue,
            expiration=st.sampled_from((None, None, None, *kind.times)),
            priority=st.sampled_from((None, 0, 1, 2, 4)),
            confirm=often,
            size=st.sampled_from((0, 0, 0, 9)),
        ),
        "route": st.builds(
            p.Publish, _some("k", "l"), exchange=_some(*(exchanges or [""])), confirm=often, mandatory=often
        ),
        "get": st.one_of(
            *(st.builds(p.Get, st.just(name), no_ack=seldom, channel=kind.channel(name)) for name in busy)
        ),
        "consume": st.one_of(
            *(
                st.builds(
                    p.Consume,
                    st.just(name),
                    _some(*TAGS),
                    prefetch=st.sampled_from((1, 1, 2, 0)),
                    no_ack=seldom,
                    priority=st.sampled_from((0, 0, 1)),
                    channel=kind.channel(name),
                )
                for name in busy
            )
        ),
        "ack": st.builds(p.Ack, pick, multiple=often, channel=channel),
        "reject": st.builds(p.Reject, pick, requeue=often, channel=channel),
        "nack": st.builds(p.Nack, pick, multiple=often, requeue=often, channel=channel),
        "advance": st.builds(p.Advance, st.sampled_from(kind.waits)),
        "cancel": st.builds(p.Cancel, _some(*TAGS)),
        "withdraw": st.builds(p.Recover, channel) | st.builds(p.CloseChannel, channel),
        "manage": st.one_of(
            st.builds(p.Count, queue),
            st.builds(p.Purge, queue),
            st.builds(p.Delete, queue, if_unused=seldom, if_empty=seldom),
            # Mapped, because it would count as many alternatives otherwise.
            st.one_of(*(_declarations(name, names, kind) for name in names)).map(lambda each: each),
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
    "consume": 4,
    "ack": 3,
    "reject": 3,
    "nack": 3,
    "advance": 4,
    "cancel": 1,
    "withdraw": 1,
    "manage": 3,
    "astray": 1,
}
_CHOICES = st.sampled_from([name for name, weight in _WEIGHTS.items() for _ in range(weight)])


@st.composite
def programs(
    draw: Callable[..., Any], kind: Kind = VIRTUAL, shortest: int = 10, longest: int = 40
) -> p.Program:
    """A topology and what happens to it. That may be nothing, so that programs can be made shorter."""
    names = QUEUES[: draw(st.integers(1, len(QUEUES)))]
    exchanges = draw(st.sampled_from(((), (), ("fan",), ("fan", "dir"))))
    program: p.Program = [p.DeclareExchange(exchange, EXCHANGES[exchange]) for exchange in exchanges]
    program += [draw(_declarations(name, names, kind)) for name in names]
    for exchange in exchanges:
        for name in draw(_BOUND):
            if name in names:
                program.append(p.Bind(name, exchange, draw(_some("k", "k", "l"))))
    operations = _operations(names, exchanges, kind)
    for choice in draw(st.lists(_CHOICES, min_size=shortest, max_size=longest)):
        if choice != "nothing":
            program.append(draw(operations[choice]))
    return program
