"""How much the fuzz tests do, and that they do the same each time.

`FAKEAMQP_FUZZ=20` multiplies the examples by twenty and draws new ones at every run; without it the
examples are the same everywhere, so that a run in CI either always fails or never does.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

__all__ = ["FACTOR", "examples"]

FACTOR = float(os.environ.get("FAKEAMQP_FUZZ", "1"))


def examples(count: float, **more: object) -> settings:
    """Settings for a test of `count` examples, times the factor that was asked for."""
    return settings(
        max_examples=max(1, int(count * FACTOR)),
        derandomize=FACTOR == 1,
        database=None,
        deadline=None,
        # Explaining a failure runs it hundreds of times more under a tracer; the shrunk example says enough.
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        **more,  # type: ignore[arg-type]
    )
