"""The clocks of a broker.

`RealClock` is the machine's clock, a test moves `VirtualClock`, and `WallClock` follows the wall clock that
the code under test sees. The last two are stepped clocks (`SteppedClock`): between steps their time stands
still, and a step runs every due timer at its due time. `Clock` is the public handle of all of them.

Only the real clock is imported by default, since most brokers use it.
"""

from __future__ import annotations

from fakeamqp.runtime.clock.real import RealClock

__all__ = ["RealClock"]
