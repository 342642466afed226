"""How far a query is behind its streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakeamqp.spark.lag import FallingBehind, LagClock
from fakeamqp.spark.options import ReadOptions


class StreamLag:
    """The lag of each stream. A message may have more than one offset, so the lag is an upper bound."""

    def __init__(self, options: ReadOptions) -> None:
        self._clocks = {stream: LagClock() for stream in options.streams}
        self._behind = FallingBehind(
            "stream " + ", ".join(options.streams),
            "More processors, a larger maxMessagesPerTrigger or fewer columns help; a super stream divides a "
            "stream. Messages that retention removes before they are read are lost",
            options.max_messages,
        )

    def now(self, position: Mapping[str, int], ends: Mapping[str, int]) -> dict[str, Any]:
        """The figures, by the offsets up to which batches are planned, and the ends of the streams."""
        streams = {}
        for stream, end in ends.items():
            at = min(position.get(stream, end), end)
            clock = self._clocks.setdefault(stream, LagClock())
            streams[stream] = {"end": end, "lag": end - at, "lagSeconds": clock.age(at, end)}
        lag = sum(each["lag"] for each in streams.values())
        seconds = max((each["lagSeconds"] for each in streams.values()), default=0.0)
        self._behind.look(int(lag), seconds)
        return {"lag": lag, "lagSeconds": seconds, "streams": streams}
