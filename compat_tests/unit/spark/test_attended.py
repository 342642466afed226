"""A connection that a thread keeps open while Spark is busy."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fakeamqp.spark import attended
from fakeamqp.spark.attended import AttendedLink
from fakeamqp.spark.errors import ConnectionLost, SpoolError

OPTIONS = SimpleNamespace(reconnect_timeout=60.0, connection=None)


class ShortLived:
    """A connection that lasts for half a minute."""

    opened = 0
    now = 0.0

    def __init__(self, _options):
        ShortLived.opened += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def check(self):
        pass

    def wake(self):
        pass

    def turn(self, _pause):
        ShortLived.now += 30
        raise ConnectionLost("maintenance")


@pytest.fixture
def links(monkeypatch):
    monkeypatch.setattr(ShortLived, "opened", 0)
    monkeypatch.setattr(ShortLived, "now", 0.0)
    monkeypatch.setattr(attended, "Link", ShortLived)
    clock = SimpleNamespace(monotonic=lambda: ShortLived.now)
    monkeypatch.setattr(attended, "time", clock)
    monkeypatch.setattr("fakeamqp.spark.retries.time", clock)


def test_the_time_to_try_again_begins_with_each_loss(links):
    """A batch may take hours, in which nothing is asked."""
    keeper = AttendedLink(OPTIONS, "keeper", lambda _link: None)
    keeper.call(lambda _link: None)
    while ShortLived.opened < 6:
        keeper.wait(0.01)
        assert keeper._thread.is_alive()
    assert keeper.call(lambda _link: 7) == 7
    keeper.stop()
    with pytest.raises(ConnectionLost, match="the reader was stopped"):
        keeper.call(lambda _link: 7)


def test_a_connection_that_cannot_be_prepared(links):
    def refuse(_link):
        raise SpoolError("in use")

    keeper = AttendedLink(OPTIONS, "keeper", refuse)
    for _ in range(2):
        with pytest.raises(SpoolError, match="in use"):
            keeper.call(lambda _link: 7)


def test_a_first_connection_that_is_lost_at_once(links):
    def lose(_link):
        raise ConnectionLost("no such queue")

    with pytest.raises(ConnectionLost, match="no such queue"):
        AttendedLink(OPTIONS, "keeper", lose).call(lambda _link: 7)
