"""The marker `amqp`: how the broker of one test differs from the usual one."""

from __future__ import annotations

import pytest

from . import options

__all__ = ["DESCRIPTION", "broker_options"]

NAME = "amqp"
OPTIONS = ("definitions", "host", "personality", "port", "seed", "tls", "users")
"""What the marker takes: the arguments of `fakeamqp.Broker` that make sense for one test."""

DESCRIPTION = (
    "amqp(personality=..., tls=..., users=..., definitions=..., ...): "
    "arguments for the fakeamqp.Broker of this test; the closest marker wins"
)


def broker_options(item: pytest.Item) -> dict[str, object]:
    """Arguments for the broker of `item`, from all its `amqp` markers; the closest marker wins.

    Fails the test if a marker has a positional argument or one that brokers do not know. Skips it if it
    runs against a real broker, which a marker cannot configure.
    """
    marks = list(item.iter_markers(NAME))
    merged: dict[str, object] = {}
    for mark in reversed(marks):
        if mark.args:
            pytest.fail(
                f"@pytest.mark.{NAME} takes named arguments only: {', '.join(OPTIONS)}", pytrace=False
            )
        for name in mark.kwargs:
            if name not in OPTIONS:
                pytest.fail(f"@pytest.mark.{NAME}: unknown argument {name!r}{_hint(name)}", pytrace=False)
        merged.update(mark.kwargs)
    if merged and options.real_url(item.config) is not None:
        pytest.skip(f"@pytest.mark.{NAME} configures fakeamqp, and --amqp-real-url names a real broker")
    return merged


def _hint(name: str) -> str:
    # Imported here: only a mistake needs it.
    from difflib import get_close_matches

    close = get_close_matches(name, OPTIONS, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; it takes {', '.join(OPTIONS)}"
