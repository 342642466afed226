"""All workloads, and the libraries that they need."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from compat_tests.simulation.libraries.workload import Workload

__all__ = ["FINDINGS", "workloads"]

#: The modules with workloads, and the distribution that each needs.
_MODULES = {
    "robust": "aio-pika",
    "rpc": "aio-pika",
    "pools": "aio-pika",
    "faststream_apps": "faststream",
    "taskiq_workers": "taskiq-aio-pika",
}

#: What is known, in words: the names of findings, which docs/simulation-findings.md describes.
FINDINGS = (
    "recovery-waits-for-itself",
    "restore-once",
    "call-during-restore",
    "returned-unseen",
    "publish-cancelled",
    "iteration-ends",
    "cancel-with-consume-ok",
    "other-channels-end",
    "program-does-not-end",
    "register-after-call",
)


def missing() -> dict[str, str]:
    """The modules whose library is not installed, with its name."""
    lacking = {}
    for module, distribution in _MODULES.items():
        try:
            version(distribution)
        except PackageNotFoundError:
            lacking[module] = distribution
    return lacking


def workloads() -> Iterator[Workload]:
    """The workloads whose libraries are installed."""
    lacking = missing()
    for module in _MODULES:
        if module not in lacking:
            yield from import_module(f"compat_tests.simulation.libraries.{module}").WORKLOADS
