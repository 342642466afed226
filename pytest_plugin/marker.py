"""The marker `amqp`: how the broker of one test differs from the usual one."""

from __future__ import annotations

from typing import Any

import pytest

from . import options

__all__ = ["DESCRIPTION", "broker_options"]

NAME = "amqp"
OPTIONS = (
    "clock",
    "definitions",
    "deny",
    "host",
    "now",
    "permit",
    "personality",
    "port",
    "seed",
    "tls",
    "trace",
    "users",
    "virtual_hosts",
)
"""The arguments of `fakeamqp.Broker` that tests are likely to want. The marker takes every other, too."""

DESCRIPTION = (
    "amqp(personality=..., clock=..., tls=..., users=..., definitions=..., ...): "
    "arguments for the fakeamqp.Broker of this test; the closest marker wins"
)


def broker_options(item: pytest.Item) -> dict[str, Any]:
    """Arguments for the broker of `item`, from all its `amqp` markers; the closest marker wins.

    Fails the test if a marker has a positional argument, or one that `fakeamqp.Broker` does not take. Skips
    it if it runs against a real broker, which a marker cannot configure.
    """
    merged: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers(NAME))):
        if mark.args:
            pytest.fail(f"@pytest.mark.{NAME} takes named arguments only, such as {_list()}", pytrace=False)
        merged.update(mark.kwargs)
    if not merged:
        return merged
    _check(merged)
    if options.real_url(item.config) is not None:
        pytest.skip(f"@pytest.mark.{NAME} configures fakeamqp, and --amqp-real-url names a real broker")
    return merged


def _check(arguments: dict[str, Any]) -> None:
    unusual = {name: value for name, value in arguments.items() if name not in OPTIONS}
    if not unusual:
        return
    from fakeamqp import Broker, FakeAMQPError

    try:
        Broker(**unusual)  # Never started: the broker knows best what it takes, and says what was meant.
    except (FakeAMQPError, TypeError) as error:
        pytest.fail(f"@pytest.mark.{NAME}: {error} (usual arguments are {_list()})", pytrace=False)


def _list() -> str:
    return ", ".join(OPTIONS)
