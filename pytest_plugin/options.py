"""Command line options; those for every run of a project have an ini option of the same meaning."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import pytest

from fakeamqp.errors import nearest, without_login

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "broker_defaults",
    "check",
    "check_broker",
    "compared",
    "declare",
    "environment",
    "given_real_url",
    "ignored",
    "inspected",
    "proxy_to",
    "races",
    "real_url",
    "real_url_of",
    "runtime",
    "schedules",
    "scope",
    "scope_problem",
    "seed",
    "spark_fast",
    "takes_proxy",
    "timeline_lines",
    "trace_folder",
    "trace_formats",
]

_REAL_URL = "amqp_real_url"
_PROXY_TO = "amqp_proxy_to"
_PERSONALITY = "amqp_personality"
_COMPARE = "amqp_compare"
_TIMELINE_LINES = "amqp_timeline_lines"
_INSPECT = "amqp_inspect"
_SEED = "amqp_seed"
_SCHEDULES = "amqp_schedules"
_RACES = "amqp_races"
_RUNTIME = "amqp_runtime"
_SPARK_FAST = "amqp_spark_fast"
_TRACE = "amqp_trace"
_TRACE_FORMATS = "amqp_trace_formats"

_SCOPE = "amqp_scope"
_ENV = "amqp_env"
_ARGUMENTS = "amqp_broker_arguments"

_TEXTS = (_REAL_URL, _PROXY_TO, _PERSONALITY, _SCOPE, _COMPARE, _TRACE, _TRACE_FORMATS, _RUNTIME)
"""Options with a text, which a shell variable that is not set leaves empty."""
_SCOPES = ("function", "session")
_RUNTIMES = ("thread", "asyncio")
_FORMATS = ("jsonl", "html", "pcapng")


def declare(parser: pytest.Parser) -> None:
    """Add the options to pytest's parser."""
    group = parser.getgroup("fakeamqp", "AMQP broker for tests")
    group.addoption(
        "--amqp-real-url",
        dest=_REAL_URL,
        metavar="URL",
        default=None,
        help="run the tests on the broker at this URL, through a proxy with faults and a trace; tests that "
        "need fakeamqp's own broker are skipped",
    )
    group.addoption(
        "--amqp-proxy-to",
        dest=_PROXY_TO,
        metavar="URL",
        default=None,
        help="run the tests that take amqp_proxy on the broker at this URL; without it, the proxy is in "
        "front of amqp_broker",
    )
    group.addoption(
        "--amqp-personality",
        dest=_PERSONALITY,
        metavar="NAME",
        default=None,
        help="behaviour that brokers emulate unless a marker sets it: rabbitmq-3.10, rabbitmq-3.13, "
        "rabbitmq-4.0, rabbitmq-4.1, rabbitmq-4.2, rabbitmq-4.3 or spec",
    )
    group.addoption(
        "--amqp-scope",
        dest=_SCOPE,
        metavar="SCOPE",
        default=None,
        help="session: the fixture amqp_broker is one broker for all tests, reset after each; "
        "function: each test gets its own (default)",
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
        "--amqp-inspect",
        dest=_INSPECT,
        action="store_true",
        default=False,
        help="hold the brokers of a failed test open, and print the addresses of their inspector pages; "
        "Ctrl-C goes on",
    )
    group.addoption(
        "--amqp-runtime",
        dest=_RUNTIME,
        metavar="NAME",
        default=None,
        help="asyncio: the broker of a test that is a coroutine runs in its event loop; "
        "thread: it has a thread of its own (default)",
    )
    group.addoption(
        "--amqp-seed",
        dest=_SEED,
        metavar="N",
        type=int,
        default=None,
        help="run simulated tests under the schedule of this seed alone, to repeat a failure",
    )
    group.addoption(
        "--amqp-schedules",
        dest=_SCHEDULES,
        metavar="N",
        type=int,
        default=None,
        help="run simulated tests that are marked with seeds=... under this many schedules instead",
    )
    group.addoption(
        "--amqp-races",
        dest=_RACES,
        metavar="true|false|N",
        default=None,
        help="races of RabbitMQ for all tests but those marked with races=False, with the seed N to repeat a "
        "failure, instead of those of their marker; false: for no test",
    )
    group.addoption(
        "--amqp-spark-fast",
        dest=_SPARK_FAST,
        action="store_true",
        default=False,
        help="start Spark from a cache in the user's cache folder; filling it takes about 15 s once",
    )
    parser.addini(_REAL_URL, "the same as --amqp-real-url", default="")
    parser.addini(_PROXY_TO, "the same as --amqp-proxy-to", default="")
    parser.addini(_PERSONALITY, "the same as --amqp-personality", default="")
    parser.addini(_SCOPE, "the same as --amqp-scope", default="")
    parser.addini(_RUNTIME, "the same as --amqp-runtime", default="")
    parser.addini(
        _ENV,
        "environment variables with the URL of the broker of the session, set before the first conftest.py "
        "is loaded: names, or NAME=template, such as BROKER_HOST={host}",
        type="linelist",
        default=[],
    )
    parser.addini(
        _ARGUMENTS,
        "arguments of fakeamqp.Broker for all brokers of the fixtures, a line each: name=value, where the "
        "value is JSON or text; the marker amqp overrides them for a test",
        type="linelist",
        default=[],
    )
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
        pytest.UsageError: see `check_broker`; or the number of lines is not a number, the folder of the
            recordings is not a folder, a format does not exist, the personalities to compare are not two that
            exist, or brokers cannot be held open in this run.
    """
    check_broker(config)
    _check_comparison(config)
    _check_inspection(config)
    lines = config.getini(_TIMELINE_LINES)
    if not str(lines).isdecimal():
        raise pytest.UsageError(f"{_TIMELINE_LINES}: {lines!r} is not a number of lines")
    wanted = schedules(config)
    if wanted is not None and wanted < 1:
        raise pytest.UsageError(f"--amqp-schedules: {wanted} is not a number of schedules")
    if wanted is not None and seed(config) is not None:
        raise pytest.UsageError(
            "--amqp-seed is one schedule and --amqp-schedules several; leave out one of them"
        )
    folder = trace_folder(config)
    if folder is not None:
        _check_folder(_given_by(config, _TRACE), folder)
    for name in trace_formats(config):
        if name not in _FORMATS:
            known = _nearest(name, _FORMATS) or f"the formats are {', '.join(_FORMATS)}"
            raise pytest.UsageError(
                f"{_given_by(config, _TRACE_FORMATS)}: there is no format {name!r}; {known}"
            )
    try:
        spark_fast(config)
    except (ValueError, pytest.UsageError) as error:
        raise pytest.UsageError(f"{_given_by(config, _SPARK_FAST)}: {error}") from None


def _check_folder(option: str, folder: Path) -> None:
    """Check that recordings can be written to a folder, which need not exist yet."""
    there = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    if not there.is_dir():
        below = "" if there == folder else f", so that {folder} cannot be made"
        raise pytest.UsageError(f"{option}: {there} is not a folder{below}")
    if not os.access(there, os.W_OK | os.X_OK):
        raise pytest.UsageError(f"{option}: nothing can be written to {there}")


def _check_inspection(config: pytest.Config) -> None:
    if not inspected(config):
        return
    if hasattr(config, "workerinput") or config.getoption("dist", "no") != "no":
        raise pytest.UsageError(
            "--amqp-inspect holds one test open at a time, on this terminal: run without -n, "
            "or with -n 0 if the ini file has -n"
        )
    for option, other in (("--amqp-real-url", real_url(config)), ("--amqp-compare", compared(config))):
        if other is not None:
            raise pytest.UsageError(
                f"--amqp-inspect shows the fakeamqp broker of one failed test; leave out {option}"
            )
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise pytest.UsageError(
            f"--amqp-inspect needs {' and '.join(missing)}: pip install 'fakeamqp[management]'"
        )


def check_broker(config: pytest.Config) -> None:
    """Check the options that say which broker tests use. pytest may not have parsed the command line yet.

    Raises:
        pytest.UsageError: the URL is not an AMQP URL, a scope or an argument of the broker does not exist or
            is invalid, the personality does not exist, or an environment variable has an unknown field.
    """
    for name in _TEXTS:
        if _on_command_line(config, name) == "":
            raise pytest.UsageError(f"{_option(name)}: the value is empty")
    for name in (_REAL_URL, _PROXY_TO):
        url = _value(config, name)
        if url is not None and not _is_amqp_url(url):
            raise pytest.UsageError(
                f"{_given_by(config, name)}: {without_login(url)!r} is not of the form "
                "amqp://user:password@host:port/"
            )
    said = scope_problem(scope(config))
    if said:
        raise pytest.UsageError(f"{_given_by(config, _SCOPE)}: {said}")
    named = runtime(config)
    if named is not None and named not in _RUNTIMES:
        near = _nearest(named, _RUNTIMES)
        raise pytest.UsageError(
            f"{_given_by(config, _RUNTIME)}: there is no runtime {named!r}; "
            f"{near or 'there are thread and asyncio'}"
        )
    if environment(config):
        from .environment import problems

        said = problems(environment(config))
        if said:
            raise pytest.UsageError(f"{_ENV}: {said}")
    personality = _value(config, _PERSONALITY)
    if personality is not None:
        _check_personality(_given_by(config, _PERSONALITY), personality)
    try:
        races(config)
    except ValueError:
        asked = _on_command_line(config, _RACES)
        raise pytest.UsageError(
            f"--amqp-races: {asked!r} is not true, false or a seed, which is a whole number"
        ) from None
    if config.getini(_ARGUMENTS):
        _check_arguments(config)


def _is_amqp_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("amqp", "amqps") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # Of the port, or of brackets.
        return False


def _check_personality(option: str, name: str) -> None:
    from fakeamqp import FakeAMQPError, Personality

    try:
        Personality(cast("Any", name))
    except FakeAMQPError as error:
        raise pytest.UsageError(f"{option}: {error}") from None


def _check_arguments(config: pytest.Config) -> None:
    named: set[str] = set()
    for line in config.getini(_ARGUMENTS):
        name, sign, _ = line.partition("=")
        if not name.strip() or not sign:
            raise pytest.UsageError(
                f"{_ARGUMENTS}: {line!r} is not of the form name=value, such as clock=virtual"
            )
        if name.strip() in named:
            raise pytest.UsageError(f"{_ARGUMENTS}: {name.strip()!r} is there twice")
        named.add(name.strip())
    from fakeamqp import Broker, FakeAMQPError

    try:
        Broker(
            **broker_defaults(config)
        )  # Not started: the constructor checks the arguments and names the nearest match.
    except (FakeAMQPError, TypeError, ValueError) as error:
        raise pytest.UsageError(f"{_ARGUMENTS}: {error}") from None


def _arguments(config: pytest.Config) -> dict[str, Any]:
    """The arguments of all brokers; values that are not JSON are text. Paths are relative to the ini file."""
    import json

    arguments: dict[str, Any] = {}
    for line in config.getini(_ARGUMENTS):
        name, _, text = (part.strip() for part in line.partition("="))
        try:
            arguments[name] = json.loads(text)
        except ValueError:
            arguments[name] = text
    if isinstance(arguments.get("definitions"), str):
        arguments["definitions"] = Path(_folder(config), arguments["definitions"])
    return arguments


def scope_problem(asked: object) -> str:
    """What is wrong with a scope, or ""."""
    if asked in _SCOPES:
        return ""
    if asked in ("class", "module", "package"):
        return (
            f"a broker has the scope 'function' or 'session', not {asked!r}; the broker of the session is "
            "reset after each test, so it serves a class or a module as well"
        )
    near = _nearest(str(asked), _SCOPES)
    return f"there is no scope {asked!r}; {near or 'there are function and session'}"


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
        (
            "the ini option amqp_env, whose variables name one broker for all tests",
            environment(config) or None,
        ),
    ):
        if other is not None:
            raise pytest.UsageError(
                f"--amqp-compare runs tests on brokers with two personalities; leave out {option}"
            )
    for name in names:
        _check_personality("--amqp-compare", name)


def _nearest(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known)
    return f"did you mean {near[0]!r}?" if near else ""


def ignored(config: pytest.Config) -> str | None:
    """An explanation if an option of the command line has no effect, or None."""
    vain = [_option(name) for name in (_PERSONALITY, _RACES) if _on_command_line(config, name)]
    if real_url(config) is not None and vain:
        return f"{' and '.join(vain)}: no effect on the real broker of {_given_by(config, _REAL_URL)}"
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


def proxy_to(config: pytest.Config) -> str | None:
    """URL of the real broker to run tests with `amqp_proxy` on, or None."""
    return _value(config, _PROXY_TO)


def real_url_of(item: pytest.Item) -> str | None:
    """URL of the real broker that `item` runs on, or None if it uses fakeamqp."""
    return (proxy_to(item.config) if takes_proxy(item) else None) or real_url(item.config)


def takes_proxy(item: pytest.Item) -> bool:
    """Whether `item` has `amqp_proxy` among its arguments, or among those of its fixtures."""
    return "amqp_proxy" in getattr(item, "fixturenames", ())


def given_real_url(config: pytest.Config, url: str) -> str:
    """The option that names the real broker at this URL."""
    return _given_by(config, _REAL_URL if url == real_url(config) else _PROXY_TO)


def inspected(config: pytest.Config) -> bool:
    """True if the brokers of a failed test are held open."""
    return bool(_on_command_line(config, _INSPECT))


def broker_defaults(config: pytest.Config) -> dict[str, Any]:
    """Default arguments of every `fakeamqp.Broker` that the fixtures create; markers override them."""
    defaults = _arguments(config) if config.getini(_ARGUMENTS) else {}
    personality, asked = _value(config, _PERSONALITY), races(config)
    if personality is not None:
        defaults["personality"] = personality
    if asked is not None:
        defaults["races"] = asked
    if inspected(config):
        defaults["management"] = True
    return defaults


def scope(config: pytest.Config) -> str:
    """The scope of the fixture `amqp_broker` where no marker sets it: "function" or "session"."""
    return _value(config, _SCOPE) or "function"


def runtime(config: pytest.Config) -> str | None:
    """The runtime of brokers of tests that are coroutines, where no marker sets it; None if it is not set."""
    return _value(config, _RUNTIME)


def seed(config: pytest.Config) -> int | None:
    """The seed under which alone simulated tests run, or None."""
    given: int | None = config.getoption(_SEED, None)
    return given


def schedules(config: pytest.Config) -> int | None:
    """The number of schedules of tests that run under several, instead of that of their marker; or None."""
    given: int | None = config.getoption(_SCHEDULES, None)
    return given


def races(config: pytest.Config) -> bool | int | None:
    """The races of all brokers of the fixtures, instead of those of the markers; None if it is not set.

    Raises:
        ValueError: it is neither true nor false nor a number.
    """
    asked = _on_command_line(config, _RACES)
    if asked is None:
        return None
    return asked == "true" if asked in ("true", "false") else int(asked)


def environment(config: pytest.Config) -> list[str]:
    """The environment variables with the address of the broker of the session."""
    entries: list[str] = config.getini(_ENV)
    return entries


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
    return Path(_folder(config), given) if given else None


def trace_formats(config: pytest.Config) -> tuple[str, ...]:
    """The formats of recordings; each is also the suffix of a file name."""
    names = [name.strip() for name in (_value(config, _TRACE_FORMATS) or "").split(",")]
    return tuple(dict.fromkeys(name for name in names if name)) or _FORMATS


def _folder(config: pytest.Config) -> Path:
    """The folder of the ini file."""
    return config.rootpath if config.inipath is None else config.inipath.parent


def _given_by(config: pytest.Config, name: str) -> str:
    """What sets an option: the command line, or the ini file."""
    return _option(name) if _on_command_line(config, name) else f"the ini option {name}"


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _value(config: pytest.Config, name: str) -> str | None:
    return _on_command_line(config, name) or config.getini(name) or None


def _on_command_line(config: pytest.Config, name: str) -> Any:
    # Before the first conftest.py is loaded, pytest knows the command line by this namespace only.
    early = getattr(config, "known_args_namespace", None)
    given = config.getoption(name, None)
    # A flag is False until the whole command line is parsed.
    return getattr(early, name, None) if given is None or given is False else given
