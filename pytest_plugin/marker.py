"""The marker `amqp`: arguments for the broker of a test."""

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
"""The usual arguments of `fakeamqp.Broker`. The marker takes all others as well."""

DESCRIPTION = (
    "amqp(personality=..., clock=..., tls=..., users=..., definitions=..., ...): "
    "arguments for the fakeamqp.Broker of this test; the closest marker wins"
)


def broker_options(item: pytest.Item) -> dict[str, Any]:
    """Arguments for the broker of `item`, from all its `amqp` markers; the closest marker wins.

    Fails the test if a marker has a positional argument, or one that `fakeamqp.Broker` does not take. Skips
    it on a real broker, which a marker cannot configure.
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
        pytest.skip(f"@pytest.mark.{NAME} configures fakeamqp, and --amqp-real-url uses a real broker")
    return merged


def _check(arguments: dict[str, Any]) -> None:
    unusual = {name: value for name, value in arguments.items() if name not in OPTIONS}
    if not unusual:
        return
    from fakeamqp import Broker, FakeAMQPError

    try:
        Broker(**unusual)  # Not started: the constructor checks the arguments and names the nearest match.
    except (FakeAMQPError, TypeError) as error:
        pytest.fail(f"@pytest.mark.{NAME}: {error} (usual arguments are {_list()})", pytrace=False)


def _list() -> str:
    return ", ".join(OPTIONS)
