"""Which random programs there are: the same at every run, unless others are asked for."""

from __future__ import annotations

import random

import pytest

from compat_tests.fuzz.profile import FRESH

__all__ = ["USUAL_SEED", "seed_of"]

USUAL_SEED = 1


def seed_of(config: pytest.Config) -> int:
    """The seed of `--hypothesis-seed`; without that the usual one, or a new one if each run has its own."""
    given = config.getoption("--hypothesis-seed", default=None)
    if given is None:
        return random.getrandbits(32) if FRESH else USUAL_SEED
    return random.getrandbits(32) if given == "random" else int(given)
