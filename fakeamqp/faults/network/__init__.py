"""Network faults: a network proxy around every connection, and toxics that act on its bytes."""

from __future__ import annotations

from fakeamqp.faults.network.api import Network
from fakeamqp.faults.network.toxics import NetworkFault

__all__ = ["Network", "NetworkFault"]
