from __future__ import annotations

from fakeamqp.model.history import History, Publication
from fakeamqp.model.limits import Bounds
from fakeamqp.model.messages.message import Message, PlainProperties
from fakeamqp.model.routing import UNROUTABLE


def publication(body: bytes) -> Publication:
    return Publication("/", Message("", "k", PlainProperties(), body), UNROUTABLE)


def bodies(kept: History[Publication]) -> list[bytes]:
    return [each.message.body for each in kept]


def test_history_over_its_count_drops_oldest_entries() -> None:
    kept: History[Publication] = History(2)
    for body in (b"1", b"2", b"3"):
        kept.append(publication(body))
    assert bodies(kept) == [b"2", b"3"]
    assert [each.message.body for each in reversed(kept)] == [b"3", b"2"]
    assert (len(kept), kept.count) == (2, 3)


def test_history_over_its_octets_drops_oldest_entries() -> None:
    kept: History[Publication] = History(1000)
    large = bytes(Bounds.history_octets // 2)
    for body in (large, large, b"small"):
        kept.append(publication(body))
    assert bodies(kept) == [large, b"small"]


def test_history_keeps_single_body_larger_than_bound() -> None:
    kept: History[Publication] = History(1000)
    kept.append(publication(bytes(Bounds.history_octets + 1)))
    assert len(kept) == 1


def test_history_records_only_latest_messages_it_can_keep_but_counts_all() -> None:
    kept: History[Publication] = History(3)
    kept.append(publication(b"0"))
    new = [publication(b"%d" % number) for number in range(1, 6)]
    latest = kept.latest([each.message for each in new])
    for message in latest:
        kept.append(next(each for each in new if each.message is message))
    assert bodies(kept) == [b"3", b"4", b"5"]
    assert (len(latest), kept.count) == (3, 6)


def test_clearing_history_resets_count() -> None:
    kept: History[Publication] = History(1)
    kept.append(publication(b"1"))
    kept.append(publication(b"2"))
    kept.clear()
    assert (len(kept), kept.count) == (0, 0)
    kept.append(publication(b"3"))
    assert bodies(kept) == [b"3"]
