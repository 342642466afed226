"""The marker `amqp`: arguments for the broker of a test."""

from __future__ import annotations

from typing import Any

import pytest

from . import options

__all__ = ["DESCRIPTION", "arguments", "broker_options", "parametrize"]

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
    "arguments for the fakeamqp.Broker of this test; the closest marker wins; "
    "with a list of personalities the test runs once for each"
)
_PARAMETER = "_amqp_personality"


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Let a test run once for each personality, if its marker names several.

    Raises:
        pytest.UsageError: the marker names none.
    """
    several = arguments(metafunc.definition).get("personality")
    if not _is_list(several):
        return
    if not several:
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: @pytest.mark.{NAME}(personality=[]) names no personality"
        )
    # An argument that no fixture and no test has: it makes the ids, and `broker_options` reads its value.
    metafunc.fixturenames.append(_PARAMETER)
    metafunc.parametrize(_PARAMETER, several, ids=[getattr(each, "name", each) for each in several])


def arguments(item: pytest.Item) -> dict[str, Any]:
    """The arguments of all `amqp` markers of `item`, not checked; the closest marker wins."""
    merged: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers(NAME))):
        merged.update(mark.kwargs)
    return merged


def broker_options(item: pytest.Item) -> dict[str, Any]:
    """Arguments for the broker of `item`, from all its `amqp` markers; the closest marker wins.

    Fails the test if a marker has a positional argument, or one that `fakeamqp.Broker` does not take. Skips
    it on a real broker, which a marker cannot configure.
    """
    if any(mark.args for mark in item.iter_markers(NAME)):
        pytest.fail(f"@pytest.mark.{NAME} takes named arguments only, such as {_list()}", pytrace=False)
    merged = arguments(item)
    if not merged:
        return merged
    if _is_list(merged.get("personality")):
        merged["personality"] = _parameter(item)
    _check(merged)
    if options.real_url(item.config) is not None:
        pytest.skip(f"@pytest.mark.{NAME} configures fakeamqp, and --amqp-real-url uses a real broker")
    return merged


def _is_list(personality: object) -> bool:
    return isinstance(personality, (list, tuple))


def _parameter(item: pytest.Item) -> Any:
    """The personality of this one of the runs that `parametrize` has made."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or _PARAMETER not in callspec.params:
        pytest.fail(
            f"@pytest.mark.{NAME}(personality=[...]) cannot run this test several times: pytest does not "
            "parametrize methods of unittest.TestCase; name one personality",
            pytrace=False,
        )
    return callspec.params[_PARAMETER]


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
