"""Replays the client side of a recording on a broker, and compares the answers with the recorded ones."""

from __future__ import annotations

from fakeamqp.replay.player import Comparison, Difference, NotTheSame, Replay, replay
from fakeamqp.replay.scaffold import scaffold
from fakeamqp.replay.target import NoBroker, ReplayError

__all__ = [
    "Comparison",
    "Difference",
    "NoBroker",
    "NotTheSame",
    "Replay",
    "ReplayError",
    "replay",
    "scaffold",
]
