"""Command line options, each with an ini twin of the same meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["broker_defaults", "check", "declare", "real_url", "timeline_lines"]

_REAL_URL = "amqp_real_url"
_PERSONALITY = "amqp_personality"
_TIMELINE_LINES = "amqp_timeline_lines"


def declare(parser: pytest.Parser) -> None:
    """Add the options to pytest's parser."""
    group = parser.getgroup("fakeamqp", "AMQP broker for tests")
    group.addoption(
        "--amqp-real-url",
        dest=_REAL_URL,
        metavar="URL",
        default=None,
        help="run the tests against the broker at this URL; those that need the fake's powers are skipped",
    )
    group.addoption(
        "--amqp-personality",
        dest=_PERSONALITY,
        metavar="NAME",
        default=None,
        help="whose behaviour brokers show when a test's marker does not say: rabbitmq-3.13, rabbitmq-4.0, "
        "rabbitmq-4.2, rabbitmq-4.3 or spec",
    )
    parser.addini(_REAL_URL, "the same as --amqp-real-url", default="")
    parser.addini(_PERSONALITY, "the same as --amqp-personality", default="")
    parser.addini(
        _TIMELINE_LINES,
        "how many of the last lines of a broker's timeline a failed test reports; 0 means all (default: 40)",
        default="40",
    )


def check(config: pytest.Config) -> None:
    """Refuse option values that cannot work, before the first test runs.

    Raises:
        pytest.UsageError: if the URL is no AMQP URL, or the number of lines is no number.
    """
    url = real_url(config)
    if url is not None:
        parts = urlsplit(url)
        if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
            raise pytest.UsageError(
                f"--amqp-real-url: {url!r} is not of the form amqp://user:password@host:port/"
            )
    lines = config.getini(_TIMELINE_LINES)
    if not str(lines).isdecimal():
        raise pytest.UsageError(f"{_TIMELINE_LINES}: {lines!r} is not a number of lines")


def real_url(config: pytest.Config) -> str | None:
    """URL of the real broker that the tests shall use, or None to use fakeamqp."""
    return _value(config, _REAL_URL)


def broker_defaults(config: pytest.Config) -> Mapping[str, object]:
    """Arguments of every `fakeamqp.Broker` that the fixtures make, before a marker changes them."""
    personality = _value(config, _PERSONALITY)
    return {} if personality is None else {"personality": personality}


def timeline_lines(config: pytest.Config) -> int:
    """How many lines of a timeline a failed test reports; 0 means all."""
    return int(config.getini(_TIMELINE_LINES))


def _value(config: pytest.Config, name: str) -> str | None:
    return config.getoption(name) or config.getini(name) or None
