"""The marker `amqp`: arguments for the broker of a test."""

from __future__ import annotations

from typing import Any

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
    from .simulated import chosen as simulated

    if any(mark.args for mark in item.iter_markers(NAME)):
        pytest.fail(f"@pytest.mark.{NAME} takes named arguments only, such as {_list()}", pytrace=False)
    merged = arguments(item)
    own = {name: merged.pop(name) for name in _OWN if name in merged}
    _check_own(own)
    if "now" in merged and simulated.applies(item):
        del merged["now"]  # The time at which the simulation starts.
    if not merged:
        return merged
    if _is_list(merged.get("personality")):
        merged["personality"] = _parameter(item)
    _check(merged)
    if options.real_url(item.config) is not None:
        pytest.skip(f"@pytest.mark.{NAME} configures fakeamqp, and --amqp-real-url uses a real broker")
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
        pytest.fail(
            f"@pytest.mark.{NAME}(reset={given['reset']!r}) is about the broker of the session, and this "
            "test has a broker of its own: add scope='session'",
            pytrace=False,
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


def _check_own(given: dict[str, Any]) -> None:
    said = ""
    if "scope" in given:
        said = options.scope_problem(given["scope"])
    if not said and not isinstance(given.get("reset", True), bool):
        said = f"reset={given['reset']!r}: give True or False"
    if not said and "env" in given:
        from . import environment as variables

        env = given["env"]
        entries = (env,) if isinstance(env, str) else env
        if not isinstance(entries, (list, tuple)):
            said = f"env={env!r}: give the names of the variables, such as env=['BROKER_URL']"
        else:
            said = next(filter(None, map(variables.problem, entries)), "")
            said = said and f"env: {said}"
    if not said and ("checks" in given or "allow" in given):
        from . import checks

        said = checks.problem(given)
    if not said and not given.keys().isdisjoint(SIMULATION):
        from .simulated import chosen

        said = chosen.settings_problem(given)
    if said:
        pytest.fail(f"@pytest.mark.{NAME}: {said}", pytrace=False)


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
    problem = _problem(unusual)
    if problem is not None:
        for name in unusual:
            near = nearest(name, (*_OWN, *OPTIONS))
            if near and near[0] in _OWN:
                pytest.fail(
                    f"@pytest.mark.{NAME} has no argument {name!r}; did you mean {near[0]!r}?", pytrace=False
                )
        pytest.fail(f"@pytest.mark.{NAME}: {problem} (usual arguments are {_list()})", pytrace=False)


def _problem(arguments: dict[str, Any]) -> Exception | None:
    """What is wrong with arguments. It is returned, since a failure while it is handled shows both."""
    from fakeamqp import Broker, FakeAMQPError

    try:
        Broker(**arguments)  # Not started: the constructor checks the arguments and names the nearest match.
    except (FakeAMQPError, TypeError) as error:
        return error
    return None


def _list() -> str:
    return ", ".join(OPTIONS)
