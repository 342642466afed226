"""The brokers of a test: those that the fixtures have created for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fakeamqp import Broker

__all__ = ["forget", "named", "of", "remember"]

_BROKERS: pytest.StashKey[list[Broker]] = pytest.StashKey()


def remember(item: pytest.Item, broker: Broker) -> None:
    """Note that `item` uses `broker`."""
    item.stash.setdefault(_BROKERS, []).append(broker)


def of(item: pytest.Item) -> list[Broker]:
    """The brokers of `item`, in the order they were started."""
    return item.stash.get(_BROKERS, [])


def forget(item: pytest.Item) -> None:
    """Drop the brokers of `item`, since pytest keeps items until the end of the run."""
    if _BROKERS in item.stash:
        del item.stash[_BROKERS]


def named(broker: Broker) -> str:
    """The address of a broker, for reports: a URL would contain the password."""
    return f"{broker.host}:{broker.port}"
