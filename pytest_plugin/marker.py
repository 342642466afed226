"""The marker `amqp`: arguments for the broker of a test."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, NoReturn

import pytest

from fakeamqp.errors import nearest

from . import options

__all__ = [
    "DESCRIPTION",
    "SIMULATION",
    "arguments",
    "broker_options",
    "check_reset",
    "environment",
    "fail",
    "parametrize",
    "request_environment",
    "resets",
    "scope",
]

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
    "races",
    "runtime",
    "seed",
    "tls",
    "trace",
    "users",
    "virtual_hosts",
)
"""The usual arguments of `fakeamqp.Broker`. The marker takes all others as well."""
SIMULATION = ("kinds", "patch_time", "seeds", "simulated", "time_limit")
"""The arguments that are about simulations."""
_OWN = ("allow", "checks", "env", "reset", "scope", *SIMULATION)
"""The arguments of the marker that are not the broker's."""

DESCRIPTION = (
    "amqp(personality=..., clock=..., tls=..., users=..., definitions=..., ...): "
    "arguments for the fakeamqp.Broker of this test; the closest marker wins; "
    "scope='session' for the broker of the session, which is reset after each test (reset=False: it is not); "
    "env=[...] for environment variables with its URL; "
    "checks=True for the checks of its trace at the end, allow=... for what these allow; "
    "simulated=True to run the coroutine in a simulation, seeds=200 under 200 schedules; "
    "with a list of personalities the test runs once for each"
)
_PARAMETER = "_amqp_personality"
_CHECKED: pytest.StashKey[set[str]] = pytest.StashKey()
"""Arguments with which a broker can be made."""


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Let a test run once for each personality, if its marker names several."""
    several = arguments(metafunc.definition).get("personality")
    if not _is_list(several) or not several:
        return
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
    it on a real broker, if an argument is none of a proxy.
    """
    from .simulated import chosen as simulated

    if any(mark.args for mark in item.iter_markers(NAME)):
        fail(item, f"@pytest.mark.{NAME} takes named arguments only, such as {_list()}")
    merged = arguments(item)
    own = {name: merged.pop(name) for name in _OWN if name in merged}
    _check_own(item, own)
    if "now" in merged and simulated.applies(item):
        del merged["now"]  # The time at which the simulation starts.
    if options.races(item.config) is not None and merged.get("races") not in (None, False):
        del merged["races"]  # Those of the command line instead.
    if not merged:
        return merged
    if "personality" in merged and not merged["personality"]:
        fail(item, f"@pytest.mark.{NAME}(personality={merged['personality']!r}) names none", "personality")
    if _is_list(merged.get("personality")):
        merged["personality"] = _parameter(item)
    _check(item, merged)
    if options.real_url_of(item) is not None:
        from fakeamqp.settings import ProxyArguments

        from .real_broker import skip

        others = merged.keys() - ProxyArguments.__annotations__.keys()
        if others:
            given = ", ".join(f"{name}=..." for name in sorted(others))
            skip(f"@pytest.mark.{NAME}({given})", "a proxy cannot configure the broker")
    return merged


def scope(item: pytest.Item) -> str | None:
    """The scope of `amqp_broker` that the marker sets, or None."""
    given: str | None = arguments(item).get("scope")
    return given


def resets(item: pytest.Item) -> bool:
    """Whether the broker of the session is reset after `item`."""
    return bool(arguments(item).get("reset", True))


def check_reset(item: pytest.Item) -> None:
    """Fail `item`, whose broker is its own, if its marker is about the reset of the broker of the session."""
    given = arguments(item)
    if "reset" in given and "scope" not in given:
        fail(
            item,
            f"@pytest.mark.{NAME}(reset={given['reset']!r}) is about the broker of the session, and this "
            "test has a broker of its own: add scope='session'",
            "reset",
        )


def environment(item: pytest.Item) -> tuple[str, ...]:
    """The environment variables that the marker names."""
    given = arguments(item).get("env", ())
    return (given,) if isinstance(given, str) else tuple(given)


def request_environment(item: pytest.Item) -> None:
    """A test whose marker names environment variables gets the fixture that sets them, before all others."""
    names = getattr(item, "fixturenames", None)
    if environment(item) and names is not None and "amqp_env" not in names:
        names.insert(0, "amqp_env")


def fail(item: pytest.Item, said: str, *names: str) -> NoReturn:
    """Fail `item` because of its markers: those with arguments of these names, or with positional ones."""
    marks = list(item.iter_markers_with_node(NAME))
    places = (_place(node, mark) for node, mark in marks if _has(mark, names))
    place = next(places, None)
    pytest.fail(said if place is None else f"{said}\n(the marker stands at {place})", pytrace=False)


def _has(mark: pytest.Mark, names: tuple[str, ...]) -> bool:
    return bool(mark.args) if not names else not mark.kwargs.keys().isdisjoint(names)


def _place(node: Any, mark: pytest.Mark) -> str:
    """The place of a marker: a test, a class or a module, with its file and line."""
    if isinstance(node, pytest.Item):
        path, line, _ = node.location
        return f"the test {node.name}, {path}:{(line or 0) + 1}"
    if not isinstance(node, pytest.Class):
        kind = "module" if isinstance(node, pytest.Module) else type(node).__name__.lower()
        return f"the {kind} {node.nodeid or node.name}, as its pytestmark"
    # A class inherits the markers of its base classes.
    cls = next((each for each in node.obj.__mro__ if mark in _marks(each)), node.obj)
    path = inspect.getsourcefile(cls) or ""
    return f"the class {cls.__qualname__}, {Path(path).name}:{inspect.getsourcelines(cls)[1]}"


def _marks(cls: type) -> list[object]:
    """The markers of a class without those of its base classes."""
    held = vars(cls).get("pytestmark", ())
    return [getattr(each, "mark", each) for each in (held if isinstance(held, (list, tuple)) else (held,))]


def _check_own(item: pytest.Item, given: dict[str, Any]) -> None:
    said = ""
    if "scope" in given:
        said = options.scope_problem(given["scope"])
    if not said and not isinstance(given.get("reset", True), bool):
        said = f"reset={given['reset']!r}: give True or False"
    if not said and "env" in given:
        from . import environment as variables

        env = given["env"]
        entries = (env,) if isinstance(env, str) else env
        if not isinstance(entries, (list, tuple)) or not entries:
            said = f"env={env!r}: give the names of the variables, such as env=['BROKER_URL']"
        else:
            said = variables.problems(entries)
            said = said and f"env={env!r}: {said}"
    if not said and ("checks" in given or "allow" in given):
        from . import checks

        said = checks.problem(arguments(item))
    if not said:
        from .simulated import chosen

        if chosen.applies(item) or not given.keys().isdisjoint(SIMULATION):
            said = chosen.settings_problem(item)
    if said:
        named = [name for name in arguments(item) if f"{name}=" in said]
        fail(item, f"@pytest.mark.{NAME}: {said}", *(named or given))


def _is_list(personality: object) -> bool:
    return isinstance(personality, (list, tuple))


def _parameter(item: pytest.Item) -> Any:
    """The personality of this one of the runs that `parametrize` has made."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or _PARAMETER not in callspec.params:
        fail(
            item,
            f"@pytest.mark.{NAME}(personality=[...]) cannot run this test several times: pytest does not "
            "parametrize methods of unittest.TestCase; name one personality",
            "personality",
        )
    return callspec.params[_PARAMETER]


def _check(item: pytest.Item, given: dict[str, Any]) -> None:
    """Fail `item` if no broker can be made with these arguments of its marker and those of the options."""
    usual = options.broker_defaults(item.config)
    if "amqp_clock" in getattr(item, "fixturenames", ()):
        usual = {"clock": "virtual", **usual}
    checked = item.config.stash.setdefault(_CHECKED, set())
    what = repr((usual, given))
    if what in checked:
        return
    problem = _problem({**usual, **given})
    if problem is None:
        checked.add(what)
        return
    from fakeamqp.settings import BrokerArguments

    wrong = [name for name in given if _problem({name: given[name]}) is not None]
    unknown = [name for name in wrong if name not in BrokerArguments.__annotations__]
    for name in unknown:
        near = nearest(name, (*_OWN, *OPTIONS))
        if near and near[0] in _OWN:
            fail(item, f"@pytest.mark.{NAME} has no argument {name!r}; did you mean {near[0]!r}?", name)
    known = f" (usual arguments are {_list()})" if unknown else ""
    with_ini = "" if wrong or not usual else f", together with {_shown(usual)} of the options"
    fail(item, f"@pytest.mark.{NAME}: {problem}{with_ini}{known}", *(wrong or given))


def _shown(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


def _problem(arguments: dict[str, Any]) -> Exception | None:
    """What is wrong with arguments. It is returned, since a failure while it is handled shows both."""
    from fakeamqp import Broker, FakeAMQPError

    try:
        Broker(**arguments)  # Not started: the constructor checks the arguments and names the nearest match.
    except (FakeAMQPError, TypeError, ValueError) as error:
        return error
    return None


def _list() -> str:
    return ", ".join(OPTIONS)
