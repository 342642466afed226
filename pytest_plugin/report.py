"""What the report of a failed test tells about its brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fakeamqp import Broker

__all__ = ["forget", "remember", "timelines"]

_BROKERS: pytest.StashKey[list[Broker]] = pytest.StashKey()


def remember(item: pytest.Item, broker: Broker) -> None:
    """Note that `item` uses `broker`, so that a failure shows what happened in it."""
    item.stash.setdefault(_BROKERS, []).append(broker)


def forget(item: pytest.Item) -> None:
    """Let go of the brokers of `item`, since pytest keeps items to the end of the run."""
    if _BROKERS in item.stash:
        del item.stash[_BROKERS]


def timelines(item: pytest.Item) -> Iterator[tuple[str, str]]:
    """Title and text of one report section for each broker of `item`, in the order they were started."""
    brokers = item.stash.get(_BROKERS, [])
    for broker in brokers:
        title = "AMQP timeline" if len(brokers) == 1 else f"AMQP timeline of {broker.url}"
        yield title, _last_lines(broker.trace.timeline(), options.timeline_lines(item.config))


def _last_lines(text: str, count: int) -> str:
    lines = text.splitlines()
    if not lines:
        return "(nothing was said)"
    if count == 0 or len(lines) <= count:
        return "\n".join(lines)
    left_out = f"({len(lines) - count} earlier lines left out; -o amqp_timeline_lines=0 shows all)"
    return "\n".join([left_out, *lines[-count:]])
