"""How far a streaming query is behind its queue or stream: in messages, in seconds, and whether it grows."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

log: logging.Logger = logging.getLogger("fakeamqp.spark")

#: Seconds. A progress shows the last figures of the broker, and asks for new ones if those are older.
REFRESH = 5.0

# Samples that are closer than this are one.
_RESOLUTION = 1.0
_MOST_SAMPLES = 4096


def totals(depths: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """The figures of a query that are those of its queues."""
    return {
        "ready": sum(depth["ready"] for depth in depths.values()),
        "consumers": sum(depth["consumers"] for depth in depths.values()),
        "queues": {queue: dict(depth) for queue, depth in depths.items()},
    }


class LagClock:
    """The age of the first message that is not read, by the time at which its position was first seen.

    It knows nothing from before its construction: an older message is as old as the clock.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._samples: deque[tuple[int, float]] = deque()

    def age(self, position: int, end: int) -> float:
        """The seconds for which there have been messages behind `position`.

        Args:
            position: the number of messages that are read.
            end: the number of messages that there are, read or not.
        """
        samples, now = self._samples, self._now()
        if samples and samples[-1][0] > end:  # The queue was purged, or others consume from it.
            samples.clear()
        if not samples or (end > samples[-1][0] and now - samples[-1][1] >= _RESOLUTION):
            samples.append((end, now))
        elif end > samples[-1][0]:
            samples[-1] = (end, samples[-1][1])
        while samples and (samples[0][0] <= position or len(samples) > _MOST_SAMPLES):
            samples.popleft()
        return round(now - samples[0][1], 1) if samples else 0.0


class FallingBehind:
    """Warns in the log when the lag of a query grows from look to look.

    Args:
        what: of which queues or streams.
        advice: what to do about it.
        most: a lag of so many messages is no reason to warn.
    """

    _LOOKS = 4
    _PAUSE = 60.0

    def __init__(self, what: str, advice: str, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._what, self._advice, self._most, self._now = what, advice, most, now
        self._looks: deque[tuple[int, float]] = deque(maxlen=self._LOOKS)
        self._warned_at = float("-inf")

    def look(self, lag: int, seconds: float) -> dict[str, Any]:
        """The figures of a lag, which is compared with those of the looks before.

        Looks within seconds of another are not compared.
        """
        self._compare(lag, seconds)
        return {"lag": lag, "lagSeconds": seconds}

    def _compare(self, lag: int, seconds: float) -> None:
        looks, now = self._looks, self._now()
        if looks and now - looks[-1][1] < REFRESH:
            return
        if looks and lag <= looks[-1][0]:
            looks.clear()
        looks.append((lag, now))
        if len(looks) == self._LOOKS and lag > self._most and now - self._warned_at >= self._PAUSE:
            self._warned_at = now
            log.warning(
                "the query falls behind %s: %d messages wait for it, %d more than %.0f s ago; the first of "
                "them has waited for %.0f s. %s",
                self._what,
                lag,
                lag - looks[0][0],
                now - looks[0][1],
                seconds,
                self._advice,
            )
