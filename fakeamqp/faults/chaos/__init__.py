"""Chaos: faults drawn at random by a seed, for soak tests.

Whether a fault happens to a method depends on the seed and on the method's place: its connection, direction,
channel, and its number among the methods of its kind there. It does not depend on what other connections do
meanwhile. So the same program gets the same faults, whatever turns its threads take. Connections are told
apart by the name the client gives itself, or by the order in which they come.

No fault leaves a client waiting for ever: if something is lost, the connection is reset soon after; faults
that last (an alarm, silence, a slow network) last less than a second of the broker's clock.
"""

from __future__ import annotations

from fakeamqp.faults.chaos.catalogue import FAULTS, PROFILES
from fakeamqp.faults.chaos.chaos import Chaos

__all__ = ["FAULTS", "PROFILES", "Chaos"]
