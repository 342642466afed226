"""One module for every client, all with the same face."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat_tests.faults.drivers import (
    aio_pika_plain,
    aio_pika_robust,
    aiormq_driver,
    celery_driver,
    kombu_driver,
    pika_asyncio,
    pika_blocking,
    pika_select,
    proton_blocking,
    py_amqp,
)
from compat_tests.faults.observation import Observation
from compat_tests.faults.scenario import Stage

__all__ = ["DRIVERS", "HABITS", "LINK_DRIVERS", "LINK_TITLES", "TITLES", "Run"]

Run = Callable[[Stage], Observation]
"""Goes through the scenario, whatever happens on the way, and leaves nothing open."""

_MODULES = {
    "pika-blocking": pika_blocking,
    "pika-select": pika_select,
    "pika-asyncio": pika_asyncio,
    "aio-pika-plain": aio_pika_plain,
    "aio-pika-robust": aio_pika_robust,
    "aiormq": aiormq_driver,
    "py-amqp": py_amqp,
    "kombu": kombu_driver,
    "celery": celery_driver,
}
_LINK_MODULES = {"proton-blocking": proton_blocking}
"""Those of AMQP 1.0, whose faults are others."""
_TOGETHER = {"batch": 3}
HABITS: dict[str, dict[str, Any]] = {
    "pika-blocking": {},
    "pika-select": _TOGETHER,
    "pika-asyncio": _TOGETHER,
    "aio-pika-plain": _TOGETHER,
    "aio-pika-robust": _TOGETHER,
    "aiormq": _TOGETHER,
    "py-amqp": {},
    "kombu": {"spare": 1},
    "celery": {"spare": 2, "late": celery_driver.LATE_MESSAGE},
    "proton-blocking": {},
}
"""What a bench has to know of each; see there."""
DRIVERS: dict[str, Run] = {name: module.run for name, module in _MODULES.items()}
TITLES: dict[str, str] = {name: module.TITLE for name, module in _MODULES.items()}
LINK_DRIVERS: dict[str, Run] = {name: module.run for name, module in _LINK_MODULES.items()}
LINK_TITLES: dict[str, str] = {name: module.TITLE for name, module in _LINK_MODULES.items()}
