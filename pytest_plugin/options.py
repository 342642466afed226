"""Command line options; those for every run of a project have an ini option of the same meaning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from fakeamqp.errors import without_login

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "broker_defaults",
    "check",
    "compared",
    "declare",
    "ignored",
    "real_url",
    "spark_fast",
    "timeline_lines",
    "trace_folder",
    "trace_formats",
]

_REAL_URL = "amqp_real_url"
_PERSONALITY = "amqp_personality"
_COMPARE = "amqp_compare"
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
        help="run the tests on the broker at this URL; tests that need features of fakeamqp are skipped",
    )
    group.addoption(
        "--amqp-personality",
        dest=_PERSONALITY,
        metavar="NAME",
        default=None,
        help="behaviour that brokers emulate unless a marker sets it: rabbitmq-3.10, rabbitmq-3.13, "
        "rabbitmq-4.0, rabbitmq-4.2, rabbitmq-4.3 or spec",
    )
    group.addoption(
        "--amqp-compare",
        dest=_COMPARE,
        metavar="A,B",
        default=None,
        help="run every test that takes a broker on both personalities, such as rabbitmq-3.13,rabbitmq-4.3, "
        "and report what changes and which choices make the difference",
    )
    group.addoption(
        "--amqp-trace",
        dest=_TRACE,
        metavar="DIR",
        default=None,
        help="write recordings of the brokers of each test to this folder",
    )
    group.addoption(
        "--amqp-trace-formats",
        dest=_TRACE_FORMATS,
        metavar="NAMES",
        default=None,
        help=f"formats that --amqp-trace writes, separated by commas (default: {','.join(_FORMATS)})",
    )
    group.addoption(
        "--amqp-spark-fast",
        dest=_SPARK_FAST,
        action="store_true",
        default=False,
        help="start Spark from a cache in the user's cache folder; filling it takes about 15 s once",
    )
    parser.addini(_REAL_URL, "the same as --amqp-real-url", default="")
    parser.addini(_PERSONALITY, "the same as --amqp-personality", default="")
    parser.addini(_TRACE, "the same as --amqp-trace; relative to the ini file", default="")
    parser.addini(_TRACE_FORMATS, "the same as --amqp-trace-formats", default="")
    parser.addini(_SPARK_FAST, "the same as --amqp-spark-fast", type="bool", default=False)
    parser.addini(
        _TIMELINE_LINES,
        "number of lines of a broker's timeline in the report of a failed test; 0 means all (default: 40)",
        default="40",
    )


def check(config: pytest.Config) -> None:
    """Check the values of the options before the first test runs.

    Raises:
        pytest.UsageError: the URL is not an AMQP URL, the number of lines is not a number, the folder of the
            recordings is not a folder, a format does not exist, or the personalities to compare are not two
            that exist.
    """
    _check_comparison(config)
    url = real_url(config)
    if url is not None:
        parts = urlsplit(url)
        if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
            raise pytest.UsageError(
                f"--amqp-real-url: {without_login(url)!r} is not of the form amqp://user:password@host:port/"
            )
    lines = config.getini(_TIMELINE_LINES)
    if not str(lines).isdecimal():
        raise pytest.UsageError(f"{_TIMELINE_LINES}: {lines!r} is not a number of lines")
    folder = trace_folder(config)
    if folder is not None and folder.exists() and not folder.is_dir():
        raise pytest.UsageError(f"--amqp-trace: {folder} is not a folder")
    for name in trace_formats(config):
        if name not in _FORMATS:
            known = _nearest(name, _FORMATS) or f"the formats are {', '.join(_FORMATS)}"
            raise pytest.UsageError(f"--amqp-trace-formats: there is no format {name!r}; {known}")


def _check_comparison(config: pytest.Config) -> None:
    names = compared(config)
    if names is None:
        return
    if not all(names) or names[0] == names[1]:
        given = config.getoption(_COMPARE)
        raise pytest.UsageError(
            f"--amqp-compare: {given!r} is not of the form A,B, such as rabbitmq-3.13,rabbitmq-4.3"
        )
    for option, other in (
        ("--amqp-real-url", real_url(config)),
        ("--amqp-personality", config.getoption(_PERSONALITY)),
    ):
        if other is not None:
            raise pytest.UsageError(
                f"--amqp-compare runs tests on brokers with two personalities; leave out {option}"
            )
    from fakeamqp import PERSONALITIES

    for name in names:
        if name not in PERSONALITIES:
            known = _nearest(name, PERSONALITIES) or f"there are {', '.join(PERSONALITIES)}"
            raise pytest.UsageError(f"--amqp-compare: there is no personality {name!r}; {known}")


def _nearest(name: str, known: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def ignored(config: pytest.Config) -> str | None:
    """An explanation if an option has no effect, or None."""
    if real_url(config) is not None and _value(config, _TRACE):
        return "--amqp-trace writes nothing, because --amqp-real-url uses a real broker, which has no trace"
    return None


def compared(config: pytest.Config) -> tuple[str, str] | None:
    """Names of the two personalities to compare, or None."""
    given = config.getoption(_COMPARE)
    if not given:
        return None
    first, _, second = given.partition(",")
    return first.strip(), second.strip()


def real_url(config: pytest.Config) -> str | None:
    """URL of the real broker to run the tests on, or None to use fakeamqp."""
    return _value(config, _REAL_URL)


def broker_defaults(config: pytest.Config) -> Mapping[str, object]:
    """Default arguments of every `fakeamqp.Broker` that the fixtures create; markers override them."""
    personality = _value(config, _PERSONALITY)
    return {} if personality is None else {"personality": personality}


def timeline_lines(config: pytest.Config) -> int:
    """Number of lines of a timeline in the report of a failed test; 0 means all."""
    return int(config.getini(_TIMELINE_LINES))


def spark_fast(config: pytest.Config) -> bool:
    """True if the Spark session of the plugin uses fast mode."""
    return bool(config.getoption(_SPARK_FAST) or config.getini(_SPARK_FAST))


def trace_folder(config: pytest.Config) -> Path | None:
    """The folder for recordings, or None for no recordings."""
    given = config.getoption(_TRACE)
    if given:
        return Path(config.invocation_params.dir, given)
    given = config.getini(_TRACE)
    base = config.rootpath if config.inipath is None else config.inipath.parent
    return Path(base, given) if given else None


def trace_formats(config: pytest.Config) -> tuple[str, ...]:
    """The formats of recordings; each is also the suffix of a file name."""
    names = [name.strip() for name in (_value(config, _TRACE_FORMATS) or "").split(",")]
    return tuple(dict.fromkeys(name for name in names if name)) or _FORMATS


def _value(config: pytest.Config, name: str) -> str | None:
    return config.getoption(name) or config.getini(name) or None
