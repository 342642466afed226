"""Texts that are the same in every process, for objects that clients send the text of.

When an answer does not come in time, aiormq closes the channel for a reason that has the text of the request:
that of an object of pamqp, with its address.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any


def make_texts_stable() -> None:
    """Leave the addresses out of the texts of frames in simulations, if pamqp is imported."""
    module = sys.modules.get("pamqp.base")
    frame: Any = getattr(module, "Frame", None)
    owner: Any = next((each for each in getattr(frame, "__mro__", ()) if "__repr__" in vars(each)), object)
    if owner is object or owner.__repr__.__module__ == __name__:
        return
    usual = owner.__repr__

    def text(self: Any) -> str:
        from fakeamqp.simulation.loop import SimulatedLoop

        found = str(usual(self))
        if isinstance(asyncio._get_running_loop(), SimulatedLoop):
            return found.replace(f"{id(self):#x}", "0x0")
        return found

    owner.__repr__ = text
