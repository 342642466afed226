"""Replays the client side of a recording on a broker, and compares the answers with the recorded ones."""

from __future__ import annotations

from fakeamqp.replay.outcome import Comparison, Difference, NoBroker, NotTheSame, Replay, ReplayError
from fakeamqp.replay.player import replay

__all__ = ["Comparison", "Difference", "NoBroker", "NotTheSame", "Replay", "ReplayError", "replay"]
