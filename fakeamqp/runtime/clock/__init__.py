"""Where a broker's time comes from.

Three clocks: `RealClock` is the machine's, `VirtualClock` is moved by a test, `WallClock` follows the wall
clock that the code under test sees. The last two move in steps (`SteppedClock`): between steps their time
stands still, and a step runs every timer that falls due on the way at the instant at which it is due. `Clock`
is what users hold of whichever it is.

All but the real clock is loaded when it is asked for: most brokers live on real time.
"""

from __future__ import annotations

from fakeamqp.runtime.clock.interface import EngineClock, Timer, TimerQueue
from fakeamqp.runtime.clock.real import RealClock

__all__ = ["EngineClock", "RealClock", "Timer", "TimerQueue"]
