"""Which tests are compared, on which personalities, and which personality the brokers of a run have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .. import endpoints, marker, options
from ..simulated import chosen as simulated

if TYPE_CHECKING:
    from fakeamqp import Personality

__all__ = ["applies", "of", "pair", "repeating", "set_for"]

_PERSONALITY: pytest.StashKey[Personality] = pytest.StashKey()
_REPEATING: pytest.StashKey[bool] = pytest.StashKey()
_FIXTURES = frozenset(
    ("aio_pika_connection", "amqp_broker", "amqp_url", "make_amqp_broker", "make_amqp_proxy")
)
"""Every fixture with a broker is one of these or depends on one."""


def applies(item: pytest.Item) -> bool:
    """Whether `item` runs on both personalities.

    It does if it takes a broker of its own, is neither simulated nor on a real broker, and no marker sets the
    personality. The broker of the session has one personality for all tests.
    """
    if options.compared(item.config) is None:
        return False
    fixtures = getattr(item, "fixturenames", ())
    takes_broker = not _FIXTURES.isdisjoint(fixtures) and set(endpoints.OF_THE_SESSION).isdisjoint(fixtures)
    if simulated.applies(item) or options.real_url_of(item) is not None:
        return False
    return takes_broker and "personality" not in marker.arguments(item) and marker.scope(item) != "session"


def pair(config: pytest.Config) -> tuple[Personality, Personality]:
    """The two personalities."""
    from fakeamqp.settings import PERSONALITIES

    names = options.compared(config)
    assert names is not None
    first, second = (PERSONALITIES[name] for name in names)
    return first, second


def set_for(item: pytest.Item, personality: Personality, *, repeating: bool) -> None:
    """Give this personality to the brokers of the next run of `item`.

    Args:
        item: the test.
        personality: that its brokers get unless the test gives them one.
        repeating: the run is one of those that look for a cause. It leaves no recordings.
    """
    item.stash[_PERSONALITY] = personality
    item.stash[_REPEATING] = repeating


def of(item: pytest.Item) -> dict[str, Any]:
    """The arguments for the brokers of `item`; empty if it is not compared."""
    return {"personality": item.stash[_PERSONALITY]} if _PERSONALITY in item.stash else {}


def repeating(item: pytest.Item) -> bool:
    """Whether `item` runs again to find a cause."""
    return item.stash.get(_REPEATING, False)
