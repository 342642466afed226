"""Which random programs there are: the same at every run, unless others are asked for."""

from __future__ import annotations

import random

import pytest

from compat_tests.fuzz.profile import FACTOR

__all__ = ["USUAL_SEED", "seed_of"]

USUAL_SEED = 1


def seed_of(config: pytest.Config) -> int:
    """The seed of `--hypothesis-seed`; without that the usual one, or any where tests do more than usual."""
    given = config.getoption("--hypothesis-seed", default=None)
    if given is None:
        return USUAL_SEED if FACTOR == 1 else random.getrandbits(32)
    return random.getrandbits(32) if given == "random" else int(given)
