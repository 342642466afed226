"""The soak whose traces are analysed has all that there is to analyse. Nothing is timed here."""

from __future__ import annotations

from compat_tests.benchmarks.soak import QUEUES, soak
from compat_tests.benchmarks.trace_soak import record
from fakeamqp.trace import ModelEvent, load


def test_trace_soak_contains_each_queue_event_and_prefetch() -> None:
    events = [event for event in soak(60).events if isinstance(event, ModelEvent)]
    assert {event.queue for event in events} >= set(QUEUES)
    assert {event.name for event in events} >= {
        *("published", "enqueued", "delivered", "acked", "requeued", "rejected", "expired", "dead-lettered"),
        *("dropped", "consumer added", "consumer ended"),
    }
    assert any(event.facts.get("redelivered") for event in events)
    assert len({event.facts["prefetch"] for event in events if event.name == "consumer added"}) > 3


def test_same_seed_gives_same_soak_timeline() -> None:
    first, again, other = soak(2).timeline(), soak(2).timeline(), soak(2, 2).timeline()
    assert first == again != other


def test_soak_recordings_are_repeated_until_event_count_is_reached(tmp_path) -> None:
    total = record(tmp_path, 5000, 2, rounds=1)
    files = sorted(tmp_path.iterdir())
    assert total == sum(len(load(file)) for file in files) >= 5000
    assert {file.name for file in files} > {"soak-0-0.jsonl", "soak-1-0.jsonl", "soak-0-1.jsonl"}
    assert len({file.read_bytes() for file in files}) == 2
