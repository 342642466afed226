"""Command line options, each with an ini twin of the same meaning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "broker_defaults",
    "check",
    "declare",
    "real_url",
    "spark_fast",
    "timeline_lines",
    "trace_folder",
    "trace_formats",
    "unheeded",
]

_REAL_URL = "amqp_real_url"
_PERSONALITY = "amqp_personality"
_TIMELINE_LINES = "amqp_timeline_lines"
_SPARK_FAST = "amqp_spark_fast"
_TRACE = "amqp_trace"
_TRACE_FORMATS = "amqp_trace_formats"

_FORMATS = ("jsonl", "html", "pcapng")


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
    group.addoption(
        "--amqp-trace",
        dest=_TRACE,
        metavar="DIR",
        default=None,
        help="write what happened in the brokers of each test to files in this folder",
    )
    group.addoption(
        "--amqp-trace-formats",
        dest=_TRACE_FORMATS,
        metavar="NAMES",
        default=None,
        help=f"which files --amqp-trace writes, with commas between them (default: {','.join(_FORMATS)})",
    )
    group.addoption(
        "--amqp-spark-fast",
        dest=_SPARK_FAST,
        action="store_true",
        default=False,
        help="start Spark from a cache in the user's cache folder, which is filled first, in about 15 s",
    )
    parser.addini(_REAL_URL, "the same as --amqp-real-url", default="")
    parser.addini(_PERSONALITY, "the same as --amqp-personality", default="")
    parser.addini(_TRACE, "the same as --amqp-trace; relative to the file that says it", default="")
    parser.addini(_TRACE_FORMATS, "the same as --amqp-trace-formats", default="")
    parser.addini(_SPARK_FAST, "the same as --amqp-spark-fast", type="bool", default=False)
    parser.addini(
        _TIMELINE_LINES,
        "how many of the last lines of a broker's timeline a failed test reports; 0 means all (default: 40)",
        default="40",
    )


def check(config: pytest.Config) -> None:
    """Refuse option values that cannot work, before the first test runs.

    Raises:
        pytest.UsageError: if the URL is no AMQP URL, the number of lines is no number, traces cannot be
            where they shall be, or there is no such format.
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
    folder = trace_folder(config)
    if folder is not None and folder.exists() and not folder.is_dir():
        raise pytest.UsageError(f"--amqp-trace: {folder} is not a folder")
    for name in trace_formats(config):
        if name not in _FORMATS:
            import difflib

            near = difflib.get_close_matches(name, _FORMATS, n=1)
            known = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_FORMATS)}"
            raise pytest.UsageError(f"--amqp-trace-formats: there is no format {name!r}; {known}")


def unheeded(config: pytest.Config) -> str | None:
    """What is asked for and cannot be had, and why; None if there is no such thing."""
    if real_url(config) is not None and _value(config, _TRACE):
        return "--amqp-trace writes nothing, for --amqp-real-url names a real broker, which keeps no trace"
    return None


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


def spark_fast(config: pytest.Config) -> bool:
    """Whether a Spark session of ours shall start from the cache."""
    return bool(config.getoption(_SPARK_FAST) or config.getini(_SPARK_FAST))


def trace_folder(config: pytest.Config) -> Path | None:
    """Where the traces of tests are written, or None if they are not."""
    given = config.getoption(_TRACE)
    if given:
        return Path(config.invocation_params.dir, given)
    given = config.getini(_TRACE)
    base = config.rootpath if config.inipath is None else config.inipath.parent
    return Path(base, given) if given else None


def trace_formats(config: pytest.Config) -> tuple[str, ...]:
    """In which formats, each of them also the ending of a file's name."""
    names = [name.strip() for name in (_value(config, _TRACE_FORMATS) or "").split(",")]
    return tuple(dict.fromkeys(name for name in names if name)) or _FORMATS


def _value(config: pytest.Config, name: str) -> str | None:
    return config.getoption(name) or config.getini(name) or None
