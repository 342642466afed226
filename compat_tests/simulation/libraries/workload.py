"""Workloads: small programs with a library, each with a promise that the library makes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from fakeamqp import Broker
from fakeamqp.simulation.waits import describe_tasks

__all__ = [
    "CHANNELS",
    "CONNECTIONS",
    "NETWORK",
    "Broken",
    "Faults",
    "Workload",
    "broken",
    "plan",
    "returns",
    "tell",
]

T = TypeVar("T")

# Enough that no event of a run is dropped.
_EVENTS = 50_000


class Broken(AssertionError):
    """A library has broken its promise."""

    #: What is broken, in the same words whenever it is.
    kind: ClassVar[str] = ""

    def __init__(self, text: str) -> None:
        super().__init__(f"{self.kind}{': ' if text else ''}{text}")
        #: The faults that happened, as `Faults.plans` has them.
        self.plans: tuple[str, ...] = ()


#: The plan of an earlier run, which happens again instead of what chaos draws.
plan: ContextVar[str | None] = ContextVar("plan", default=None)

_kinds: dict[str, type[Broken]] = {}


def broken(kind: str, text: str = "") -> Broken:
    """An error of a kind. Each kind has a type, so that shrinking does not mix them up."""
    if kind not in _kinds:
        _kinds[kind] = type("Broken", (Broken,), {"kind": kind})
    return _kinds[kind](text)


@dataclass(frozen=True)
class Faults:
    """Faults that chaos draws from the seed of the simulation."""

    name: str
    words: str
    profile: str | Mapping[str, float] = field(repr=False)
    intensity: float = 3

    def on(self, broker: Broker) -> Any:
        """A context during which they happen."""
        given = plan.get()
        if given is not None:
            return broker.faults.chaos(plan=given)
        return broker.faults.chaos(profile=self.profile, intensity=self.intensity)


#: What RabbitMQ never does is left out: `channel.flow`, nacks for what is stored, malformed frames.
NETWORK = Faults(
    "network",
    "connections end anywhere, also inside of a delivery or a handshake; stalls, losses, slow bytes",
    "network",
)
CONNECTIONS = Faults(
    "connections",
    "the broker closes connections, refuses logins, cancels consumers, blocks publishers, nacks, restarts, "
    "crashes",
    {
        "close-connection": 0.01,
        "refused-login": 0.02,
        "cancel-consumers": 0.01,
        "alarm": 0.01,
        "nack": 0.03,
        "late-confirm": 0.03,
        "restart": 0.004,
        "crash": 0.005,
    },
)
CHANNELS = Faults("channels", "the broker closes channels with 404, 405 or 406", {"close-channel": 0.02})


@dataclass(frozen=True)
class Workload:
    """A program with a library, run by `run` in a simulation."""

    name: str
    #: Distributions whose versions a report names, the library first.
    packages: tuple[str, ...]
    #: What has to hold, and where the library says so.
    promise: str
    source: str
    #: The program. It raises an error made by `broken`.
    program: Callable[[Broker], Coroutine[Any, Any, None]] = field(repr=False)
    #: What happens to the program, in words.
    faults: str = "none"
    #: Findings by the kinds of errors that they cause here: these are known.
    known: Mapping[str, str] = field(default_factory=dict)

    async def run(self) -> None:
        """Run the program with a new broker."""
        # Without races of the broker: what the page lists was measured without them.
        async with Broker(runtime="asyncio", trace=_EVENTS, races=False) as broker:
            try:
                await self.program(broker)
            except Broken as error:
                error.plans = broker.faults.plans
                raise


async def returns(awaitable: Awaitable[T], seconds: float, what: str) -> T:
    """What an awaitable returns or raises. It fails if that takes more simulated seconds."""
    task = asyncio.ensure_future(awaitable)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        raise broken(f"{what} does not return", describe_tasks(asyncio.get_running_loop()))
    if task.cancelled():
        raise broken(f"{what} raises CancelledError, though nothing has cancelled it")
    return task.result()


async def tell(awaitable: Awaitable[object], seconds: float, what: str) -> Exception | None:
    """None if an awaitable returns in time, or the error that it raises."""
    try:
        await returns(awaitable, seconds, what)
    except Broken:
        raise
    except Exception as error:
        return error
    return None
