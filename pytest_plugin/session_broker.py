"""The broker of the session: one for all tests of a process that ask for it, and reset after each of them.

It starts when a test first asks for it. If the ini option `amqp_env` names environment variables, it starts
before pytest loads the first conftest.py, so that settings which are read at import find it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import endpoints, environment, marker, options, recordings
from .comparison import chosen
from .simulated import chosen as simulated

if TYPE_CHECKING:
    from fakeamqp import Broker

    from .endpoints import AnyEndpoint
    from .real_broker import RealBroker

__all__ = ["address", "begin", "end", "is_idle_bystander", "of", "serves", "set_environment", "shared"]

_FIXTURES = frozenset((*endpoints.OF_THE_SESSION, "amqp_broker", "amqp_url"))
"""Every fixture with the broker of the session is one of these or depends on one."""


class _Session:
    """The broker, or the proxy in its place, and the test that uses it at the moment."""

    def __init__(self, broker: Broker | RealBroker) -> None:
        self.broker = broker
        self.item: pytest.Item | None = None


_SESSION: pytest.StashKey[_Session] = pytest.StashKey()


def of(config: pytest.Config, *, checked: bool = False) -> Broker | RealBroker:
    """The running broker of this process; it stops at the end of the run.

    With `--amqp-real-url` it is a proxy; with `checked`, a test fails if there is no broker behind it.
    """
    real = options.real_url(config)
    if real is not None and checked:
        from .real_broker import check

        check(config, real)
    if _SESSION not in config.stash:
        config.stash[_SESSION] = _Session(_started(config, real))
        config.add_cleanup(lambda: _stop(config))
    return config.stash[_SESSION].broker


def _started(config: pytest.Config, real: str | None) -> Broker | RealBroker:
    arguments = {**options.broker_defaults(config), "runtime": "thread"}
    if real is None:
        from fakeamqp import Broker

        return Broker(**arguments).start()
    from fakeamqp.settings import ProxyArguments

    from .real_broker import RealBroker

    taken = ProxyArguments.__annotations__
    return RealBroker(real, **{name: value for name, value in arguments.items() if name in taken}).start()


def set_environment(config: pytest.Config) -> None:
    """Set the environment variables of the ini option until the end of the run."""
    entries = options.environment(config)
    if not entries:
        return
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    for name, value in environment.values(entries, *address(of(config))).items():
        patch.setenv(name, value)


def address(endpoint: AnyEndpoint) -> tuple[str, str]:
    """The URL of an endpoint, and the file with its certificate authority, if it has one."""
    return endpoint.url, str(endpoint.tls.ca_file) if endpoint.url.startswith("amqps:") else ""


def serves(item: pytest.Item) -> str:
    """Why the fixture `amqp_broker` of `item` is the broker of the session; "" if it is not."""
    if simulated.applies(item) or options.real_url_of(item) != options.real_url(item.config):
        return ""
    asked = marker.scope(item)
    if asked is not None:
        return "its marker has scope='session'" if asked == "session" else ""
    for fixture in endpoints.OF_THE_SESSION:
        if fixture in getattr(item, "fixturenames", ()):
            return f"it takes {fixture}, directly or through another fixture"
    if chosen.of(item):  # A comparison gives each run a broker of its own.
        return ""
    if options.environment(item.config):
        return "the ini option amqp_env names environment variables with its address"
    return "of the option amqp_scope" if options.scope(item.config) == "session" else ""


def begin(item: pytest.Item) -> None:
    """Note that `item` uses the broker from now on, if it takes it by a fixture or by the environment."""
    takes = not set(endpoints.OF_THE_SESSION).isdisjoint(getattr(item, "fixturenames", ()))
    if takes or options.environment(item.config):
        _use(item)


def shared(item: pytest.Item) -> Broker | RealBroker | None:
    """The broker, if the fixture `amqp_broker` of `item` is this one; or None."""
    why = serves(item)
    if not why:
        marker.check_reset(item)
        return None
    own = marker.broker_options(item)
    if own:
        given = ", ".join(f"{name}=..." for name in own)
        marker.fail(
            item,
            f"@pytest.mark.amqp({given}) configures a broker of the test's own, but this test uses the "
            f"broker of the session, because {why}: add scope='function' to the marker, or configure all "
            "brokers with the ini option amqp_broker_arguments",
            *own,
        )
    of(item.config, checked=True)
    return _use(item)


def _use(item: pytest.Item) -> Broker | RealBroker:
    """The broker, for `item`: its report has what happens from now on."""
    broker = of(item.config)
    session = item.config.stash[_SESSION]
    if session.item is not item:
        session.item = item
        recordings.begin(item)
        recorder = broker._recorder
        endpoints.remember(item, broker, since=None if recorder is None else recorder.mark())
    return broker


def is_idle_bystander(item: pytest.Item, endpoint: AnyEndpoint) -> bool:
    """Whether `endpoint` belongs to `item` only because of the environment, and nothing happened on it."""
    session = item.config.stash.get(_SESSION, None)
    if session is None or session.broker is not endpoint or endpoint._recorder is None:
        return False
    return (
        _FIXTURES.isdisjoint(getattr(item, "fixturenames", ())) and len(endpoints.trace(item, endpoint)) == 0
    )


def end(item: pytest.Item) -> None:
    """The test has ended: write its recordings, and reset the broker for the next one."""
    session = item.config.stash.get(_SESSION, None)
    if session is None or session.item is not item:
        return
    session.item = None
    recordings.write(item)
    if marker.resets(item):
        session.broker.start()  # The test may have stopped it.
        session.broker._reset("the reset before this test")


def _stop(config: pytest.Config) -> None:
    session = config.stash[_SESSION]
    try:
        if session.item is not None:  # The test was interrupted.
            recordings.write(session.item)
    finally:
        session.broker.stop()
        del config.stash[_SESSION]
