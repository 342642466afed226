"""Random values of the code under test, drawn from the seed of a simulation."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class SeededRandomness:
    """Random values that are drawn from a seed, and go on where they were each time they are used.

    Clients name queues, consumers and messages with them.
    """

    def __init__(self, seed: int) -> None:
        self._bytes = random.Random(f"{seed}:bytes").randbytes
        self._state = random.Random(f"{seed}:random").getstate()

    @contextmanager
    def used(self) -> Iterator[None]:
        """Make `random`, `os.urandom`, `uuid` and `secrets` repeatable in this thread.

        The module `random` has its former state afterwards.
        """
        thread, draw, real_urandom = threading.get_ident(), self._bytes, os.urandom
        # `secrets` and `random.SystemRandom` have a reference of their own.
        real_reference: Any = getattr(random, "_urandom", None)

        def urandom(size: int, /) -> bytes:
            return draw(size) if threading.get_ident() == thread else real_urandom(size)

        state = random.getstate()
        random.setstate(self._state)
        os.urandom = urandom
        if real_reference is not None:
            random._urandom = urandom  # type: ignore[attr-defined]
        try:
            yield
        finally:
            os.urandom = real_urandom
            if real_reference is not None:
                random._urandom = real_reference  # type: ignore[attr-defined]
            self._state = random.getstate()
            random.setstate(state)
