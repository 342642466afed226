"""Descriptors beyond those that `select` takes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["high_descriptors"]

_SELECTED = 1024


@contextmanager
def high_descriptors() -> Iterator[None]:
    """Let each new descriptor be one that `select` does not take."""
    taken = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while taken[-1] < _SELECTED:
            taken.append(os.dup(taken[0]))
        yield
    finally:
        for number in taken:
            os.close(number)
