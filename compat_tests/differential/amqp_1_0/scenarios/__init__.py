"""The scenarios: each is a function of a play, on which it opens peers; the transcript is what they note.

Every module of this package enters its scenarios in `SCENARIOS`.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from compat_tests.differential.amqp_1_0.scenarios.play import ALONE, SCENARIOS, SUBJECTS, Play

__all__ = ["ALONE", "SCENARIOS", "SUBJECTS", "Play"]

for _module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
