"""Feed the client side of a recording to a broker, and compare its answers with those of then."""

from __future__ import annotations

from fakeamqp.replay.replaying import Comparison, Difference, NoBroker, Replay, ReplayError, replay

__all__ = ["Comparison", "Difference", "NoBroker", "Replay", "ReplayError", "replay"]
