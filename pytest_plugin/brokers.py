"""The brokers of a test: those that the fixtures have created for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fakeamqp import Broker
    from fakeamqp.trace import Trace
    from fakeamqp.trace.recorder import RecorderMark

__all__ = ["OF_THE_SESSION", "forget", "named", "of", "remember", "trace"]

OF_THE_SESSION = ("amqp_broker_session", "amqp_url_session")
"""The fixtures of the broker of the session; a fixture of that scope reaches it by one of them."""

_BROKERS: pytest.StashKey[list[Broker]] = pytest.StashKey()
_SINCE: pytest.StashKey[dict[int, RecorderMark]] = pytest.StashKey()


def remember(item: pytest.Item, broker: Broker, *, since: RecorderMark | None = None) -> None:
    """Note that `item` uses `broker`; what came before `since` belongs to earlier tests."""
    item.stash.setdefault(_BROKERS, []).append(broker)
    if since is not None:
        item.stash.setdefault(_SINCE, {})[id(broker)] = since


def trace(item: pytest.Item, broker: Broker) -> Trace:
    """What happened on a broker of `item` during `item`. The broker must have a recorder."""
    recorder = broker._recorder
    assert recorder is not None
    with broker._engine:
        return recorder.trace(item.stash.get(_SINCE, {}).get(id(broker)))


def of(item: pytest.Item) -> list[Broker]:
    """The brokers of `item`, in the order they were started."""
    return item.stash.get(_BROKERS, [])


def forget(item: pytest.Item) -> None:
    """Drop the brokers of `item`, since pytest keeps items until the end of the run."""
    if _BROKERS in item.stash:
        del item.stash[_BROKERS]
    if _SINCE in item.stash:
        del item.stash[_SINCE]


def named(broker: Broker) -> str:
    """The address of a broker, for reports: a URL would contain the password."""
    return f"{broker.host}:{broker.port}"
