"""Random values of the code under test, drawn from the seed of a simulation."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["seeded_randomness"]


@contextmanager
def seeded_randomness(seed: int) -> Iterator[None]:
    """Make `random`, `os.urandom`, `uuid` and `secrets` repeatable in this thread.

    Clients name queues, consumers and messages with them. The module `random` has its former state
    afterwards.
    """
    thread = threading.get_ident()
    draw = random.Random(f"{seed}:bytes").randbytes
    real_urandom = os.urandom
    # `secrets` and `random.SystemRandom` have a reference of their own.
    real_reference: Any = getattr(random, "_urandom", None)

    def urandom(size: int, /) -> bytes:
        return draw(size) if threading.get_ident() == thread else real_urandom(size)

    state = random.getstate()
    random.seed(f"{seed}:random")
    os.urandom = urandom
    if real_reference is not None:
        random._urandom = urandom  # type: ignore[attr-defined]
    try:
        yield
    finally:
        os.urandom = real_urandom
        if real_reference is not None:
            random._urandom = real_reference  # type: ignore[attr-defined]
        random.setstate(state)
