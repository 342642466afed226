"""How many examples property and fuzz tests draw, and whether those are new ones.

`FAKEAMQP_FUZZ` multiplies the examples. Without it there are a tenth of them, the same at every run, so that
`make test` either always fails or never does. From 1 on (`make test-all`, `make fuzz`) every run draws new
examples from a new seed, and a failure says how to draw them again (compat_tests/tools/fuzz_plugin.py).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import HealthCheck, Phase, settings

__all__ = ["FACTOR", "FRESH", "examples", "load_profile", "sampled", "scaled"]

T = TypeVar("T")

FACTOR = float(os.environ.get("FAKEAMQP_FUZZ", "0.1"))
#: Whether each run has examples of its own.
FRESH = FACTOR >= 1


def examples(count: float, **more: object) -> settings:
    """Settings for a test of `count` examples, times the factor that was asked for."""
    return settings(
        max_examples=scaled(count),
        # Explaining a failure runs it hundreds of times more under a tracer; the shrunk example says enough.
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        **more,  # type: ignore[arg-type]
    )


def load_profile() -> None:
    """Have property tests without a number of their own draw a hundred examples, times the factor."""
    settings.register_profile(
        "fakeamqp",
        max_examples=scaled(100),
        derandomize=not FRESH,
        database=None,
        deadline=None,
        print_blob=True,
    )
    settings.load_profile("fakeamqp")


def scaled(count: float) -> int:
    """So many examples, times the factor that was asked for; one at least."""
    return max(1, int(count * FACTOR))


def sampled(cases: Sequence[T], first: int = 0) -> Sequence[T]:
    """All cases, or where a tenth is asked for, every eleventh from `first` on: odd and even ones in turn."""
    step = 1 if FACTOR >= 1 else round(1 / FACTOR) | 1
    return cases[first % step :: step]
