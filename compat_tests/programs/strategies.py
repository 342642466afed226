"""Programs in which much happens to few queues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import strategies as st

from compat_tests.differential.script import (
    CONFIRMS as SELECT_CONFIRMS,
    Call,
    Pause,
    ack,
    bind,
    call,
    consume,
    exchange,
    get,
    nack,
    open_channel,
    pause,
    publish,
    queue,
    reject,
)
from compat_tests.programs.program import CONFIRMS, UNKNOWN_TAG, Program, publishes, with_body
from compat_tests.programs.reference import Reference, Tie

__all__ = ["QUEUES", "REAL", "VIRTUAL", "Kind", "programs"]

QUEUES = ("@a", "@b", "@c", "@d")
EXCHANGES = {"@fan": "fanout", "@dir": "direct"}
MISSING = "@no"
"""A queue and an exchange that there are not."""
TAGS = ("x", "y", "z")
Arguments = dict[str, Any]
Steps = list[Call | Pause]


@dataclass(frozen=True)
class Kind:
    """What programs are to be like: types of queues, times to live, pauses, and who shares a channel.

    Where channels are not shared, what is received from a queue has one of its own.
    """

    types: tuple[str, ...]
    times: tuple[int, ...]
    waits: tuple[float, ...]
    expiries: tuple[int, ...]
    durable: bool
    """Whether queues and exchanges are: a real broker takes its time for them."""
    shares_channels: bool

    def channel(self, queue: str) -> st.SearchStrategy[int]:
        """Where messages of a queue are received."""
        return st.integers(2, 3) if self.shares_channels else st.just(_own_channel(queue))

    def any_channel(self, names: tuple[str, ...]) -> st.SearchStrategy[int]:
        """Where messages of any of these queues are received."""
        return st.integers(2, 3) if self.shares_channels else st.sampled_from([*map(_own_channel, names)])


def _own_channel(queue: str) -> int:
    return 2 + (QUEUES.index(queue) if queue in QUEUES else 0)


VIRTUAL = Kind(
    types=("classic", "classic", "quorum"),
    # Powers of two divide all times, so that sums of them are exact on every clock.
    times=(0, 125, 250, 500, 1000, 1125, 2000),
    waits=(0.125, 0.25, 0.5, 1, 1, 2, 5),
    expiries=(500, 1125, 4000),
    durable=True,
    shares_channels=True,
)
"""Time is the test's, and all happens in turn."""
REAL = Kind(
    types=("classic",),
    times=(250, 250, 750, 1250),
    waits=(0.5, 0.5, 1, 1.5),
    expiries=(750, 1750),
    durable=False,
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
def _declarations(draw: Callable[..., Any], name: str, names: tuple[str, ...], kind: Kind) -> Steps:
    """One of these queues, that mostly dead-letters and has up to two other features."""
    queue_type = draw(_some(*kind.types))
    arguments: Arguments = {} if queue_type == "classic" else {"x-queue-type": queue_type}
    for feature in draw(_features(queue_type, kind)):
        arguments.update(feature)
    if draw(st.integers(0, 3)):
        arguments.update(draw(_dead_letters(names)))
    return [queue(name, durable=int(kind.durable), arguments=arguments)]


def _built(word: Callable[..., Call | Pause], *arguments: Any, **more: Any) -> st.SearchStrategy[Steps]:
    """A step; values that are no strategies are as they are."""

    def strategy(value: Any) -> st.SearchStrategy[Any]:
        return value if isinstance(value, st.SearchStrategy) else st.just(value)

    named = {name: strategy(value) for name, value in more.items()}
    return st.builds(word, *map(strategy, arguments), **named).map(lambda step: [step])


def _properties(priority: int | None, expiration: int | None) -> dict[str, Any]:
    found = {"priority": priority, "expiration": None if expiration is None else str(expiration)}
    return {name: value for name, value in found.items() if value is not None}


def _consumption(prefetch: int, priority: int, step: Steps) -> Steps:
    """A prefetch limit for one consumer, and the consumer."""
    [last] = step
    assert isinstance(last, Call)
    if priority:
        last = last.with_(arguments={"x-priority": priority})
    return [call("basic.qos", prefetch_count=prefetch, ch=last.arguments["ch"]), last]


@cache
def _steps(
    names: tuple[str, ...], exchanges: tuple[str, ...], kind: Kind
) -> dict[str, st.SearchStrategy[Steps]]:
    """What may be done with these queues, by what it is for. Delivery tags are places among those held."""
    busy = (names[0], names[0], *names)
    """More happens to the first."""
    some_queue = st.sampled_from(busy)
    channel = kind.any_channel(names)
    pick = st.sampled_from((0, 0, 0, 1, 2, -1))
    often = st.booleans()
    seldom = st.integers(0, 7).map(lambda number: number == 7)
    confirmed = st.sampled_from((1, CONFIRMS))
    tag = _some(*TAGS)
    properties = st.builds(
        _properties, st.sampled_from((None, 0, 1, 2, 4)), st.sampled_from((None, None, None, *kind.times))
    )
    return {
        "publish": _built(
            publish, some_queue, st.sampled_from(("", "", "", "." * 9)), props=properties, ch=confirmed
        ),
        "route": _built(
            publish, _some("k", "l"), "", _some(*(exchanges or [""])), mandatory=often, ch=confirmed
        ),
        "get": st.one_of(*(_built(get, name, seldom, ch=kind.channel(name)) for name in busy)),
        "consume": st.one_of(
            *(
                st.builds(
                    _consumption,
                    st.sampled_from((1, 1, 2, 0)),
                    st.sampled_from((0, 0, 1)),
                    _built(consume, name, tag, no_ack=seldom, ch=kind.channel(name)),
                )
                for name in busy
            )
        ),
        "ack": _built(ack, pick, multiple=often, ch=channel),
        "reject": _built(reject, pick, often, ch=channel),
        "nack": _built(nack, pick, multiple=often, requeue=often, ch=channel),
        "pause": _built(pause, st.sampled_from(kind.waits)),
        "cancel": _built(call, "basic.cancel", consumer_tag=tag),
        "withdraw": _built(call, "basic.recover", requeue=1, ch=channel)
        | _built(call, "channel.close", ch=channel),
        "manage": st.one_of(
            _built(queue, some_queue, passive=1),
            _built(call, "queue.purge", queue=some_queue),
            _built(call, "queue.delete", queue=some_queue, if_unused=seldom, if_empty=seldom),
            # Mapped, because it would count as many alternatives otherwise.
            st.one_of(*(_declarations(name, names, kind) for name in names)).map(lambda each: each),
        ),
        "astray": st.one_of(
            _built(queue, MISSING, passive=1),
            _built(call, "queue.purge", queue=MISSING),
            _built(call, "queue.delete", queue=MISSING),
            _built(get, MISSING, 0, ch=channel),
            _built(consume, MISSING, tag, ch=channel),
            _built(bind, some_queue, MISSING),
            _built(publish, some_queue, "", MISSING, ch=confirmed),
            _built(publish, MISSING, "", mandatory=often, ch=confirmed),
            _built(ack, UNKNOWN_TAG, ch=channel),
        ),
    }


def _as_things_are(steps: Steps, reference: Reference) -> Steps:
    """Steps as they are taken: with tags of what is held, on open channels, or not at all."""
    taken: Steps = []
    for step in steps:
        if isinstance(step, Call):
            if step.method in ("basic.ack", "basic.nack", "basic.reject"):
                pick, channel = step.arguments["delivery_tag"], reference.channels.get(step.arguments["ch"])
                tags = sorted(channel.held) if channel is not None else []
                if not tags and pick != UNKNOWN_TAG:
                    return []
                if pick != UNKNOWN_TAG:
                    step = step.with_(delivery_tag=tags[pick % len(tags)])
            elif step.method == "basic.cancel":
                consumer = reference.consumer(step.arguments["consumer_tag"])
                if consumer is None:
                    return []
                step = step.with_(ch=consumer.channel)
            elif step.method == "basic.consume" and reference.consumer(step.arguments["consumer_tag"]):
                return []
            number = step.arguments.get("ch", 1)
            if number not in reference.channels and open_channel(number) not in taken:
                taken.append(open_channel(number))
                taken += [SELECT_CONFIRMS.with_(ch=number)] * (number == CONFIRMS)
        taken.append(step)
    return taken


_WEIGHTS = {
    "nothing": 1,
    "publish": 9,
    "route": 2,
    "get": 3,
    "consume": 4,
    "ack": 3,
    "reject": 3,
    "nack": 3,
    "pause": 4,
    "cancel": 1,
    "withdraw": 1,
    "manage": 3,
    "astray": 1,
}
_CHOICES = st.sampled_from([name for name, weight in _WEIGHTS.items() for _ in range(weight)])


@st.composite
def programs(
    draw: Callable[..., Any], kind: Kind = VIRTUAL, shortest: int = 10, longest: int = 40
) -> Program:
    """A topology and what happens to it. That may be nothing, so that programs can be made shorter.

    A program ends before the first step of which the reference cannot say what comes.
    """
    names = QUEUES[: draw(st.integers(1, len(QUEUES)))]
    exchanges = draw(st.sampled_from(((), (), ("@fan",), ("@fan", "@dir"))))
    durable = int(kind.durable)
    program: Steps = [exchange(each, EXCHANGES[each], durable=durable) for each in exchanges]
    for name in names:
        program += draw(_declarations(name, names, kind))
    for each in exchanges:
        for name in draw(_BOUND):
            if name in names:
                program.append(bind(name, each, draw(_some("k", "k", "l"))))
    reference = Reference()
    for step in program:
        reference.perform(step)
    steps = _steps(names, exchanges, kind)
    for choice in draw(st.lists(_CHOICES, min_size=shortest, max_size=longest)):
        if choice == "nothing":
            continue
        try:
            for step in _as_things_are(draw(steps[choice]), reference):
                step = with_body(step, 1 + publishes(program))
                reference.perform(step)
                program.append(step)
        except Tie:
            break
    return program
