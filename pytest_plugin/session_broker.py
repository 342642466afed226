"""The broker of the session: one for all tests of a process that ask for it, and reset after each of them.

It starts when a test first asks for it. If the ini option `amqp_env` names environment variables, it starts
before pytest loads the first conftest.py, so that settings which are read at import find it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import brokers, environment, marker, options, recordings
from .comparison import chosen
from .simulated import chosen as simulated

if TYPE_CHECKING:
    from fakeamqp import Broker

__all__ = ["address", "begin", "end", "is_idle_bystander", "of", "serves", "set_environment", "use"]

_FIXTURES = frozenset((*brokers.OF_THE_SESSION, "amqp_broker", "amqp_url"))
"""Every fixture with the broker of the session is one of these or depends on one."""


class _Session:
    """The broker, and the test that uses it at the moment."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.item: pytest.Item | None = None


_SESSION: pytest.StashKey[_Session] = pytest.StashKey()


def of(config: pytest.Config) -> Broker:
    """The running broker of this process; it stops at the end of the run."""
    if _SESSION not in config.stash:
        from fakeamqp import Broker

        arguments = {**options.broker_defaults(config), "runtime": "thread"}
        config.stash[_SESSION] = _Session(Broker(**arguments).start())
        config.add_cleanup(lambda: _stop(config))
    return config.stash[_SESSION].broker


def set_environment(config: pytest.Config) -> None:
    """Set the environment variables of the ini option until the end of the run."""
    entries = options.environment(config)
    if not entries:
        return
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    real = options.real_url(config)
    broker = None if real is not None else of(config)
    for name, value in environment.values(entries, *address(broker, real)).items():
        patch.setenv(name, value)


def address(broker: Broker | None, real: str | None = None) -> tuple[str, str]:
    """The URL of a broker, and the file with its certificate authority, if it has one."""
    if broker is None:
        return real or "", ""
    return broker.url, str(broker.tls.ca_file) if broker.url.startswith("amqps:") else ""


def serves(item: pytest.Item) -> str:
    """Why the fixture `amqp_broker` of `item` is the broker of the session; "" if it is not."""
    if simulated.applies(item):
        return ""
    asked = marker.scope(item)
    if asked is not None:
        return "its marker has scope='session'" if asked == "session" else ""
    for fixture in brokers.OF_THE_SESSION:
        if fixture in getattr(item, "fixturenames", ()):
            return f"it takes {fixture}, directly or through another fixture"
    if chosen.of(item):  # A comparison gives each run a broker of its own.
        return ""
    if options.environment(item.config):
        return "the ini option amqp_env names environment variables with its address"
    return "of the option amqp_scope" if options.scope(item.config) == "session" else ""


def begin(item: pytest.Item) -> None:
    """Note that `item` uses the broker from now on, if it takes it by a fixture or by the environment."""
    takes = not set(brokers.OF_THE_SESSION).isdisjoint(getattr(item, "fixturenames", ()))
    if (takes or options.environment(item.config)) and options.real_url(item.config) is None:
        use(item)


def use(item: pytest.Item) -> Broker:
    """The broker, for `item`: its report has what happens from now on."""
    broker = of(item.config)
    session = item.config.stash[_SESSION]
    if session.item is not item:
        session.item = item
        recordings.begin(item)
        recorder = broker._recorder
        brokers.remember(item, broker, since=None if recorder is None else recorder.mark())
    return broker


def is_idle_bystander(item: pytest.Item, broker: Broker) -> bool:
    """Whether `broker` belongs to `item` only because of the environment, and nothing happened on it."""
    session = item.config.stash.get(_SESSION, None)
    if session is None or session.broker is not broker or broker._recorder is None:
        return False
    return _FIXTURES.isdisjoint(getattr(item, "fixturenames", ())) and len(brokers.trace(item, broker)) == 0


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
