"""The soak whose traces are analysed has all that there is to analyse. Nothing is timed here."""

from __future__ import annotations

from compat_tests.benchmarks.soak import QUEUES, soak
from compat_tests.benchmarks.trace_soak import record
from fakeamqp.trace import ModelEvent, load


def test_a_soak_has_something_of_everything() -> None:
    events = [event for event in soak(60).events if isinstance(event, ModelEvent)]
    assert {event.queue for event in events} >= set(QUEUES)
    assert {event.name for event in events} >= {
        *("published", "enqueued", "delivered", "acked", "requeued", "rejected", "expired", "dead-lettered"),
        *("dropped", "consumer added", "consumer ended"),
    }
    assert any(event.facts.get("redelivered") for event in events)
    assert len({event.facts["prefetch"] for event in events if event.name == "consumer added"}) > 3


def test_the_same_seed_gives_the_same_soak() -> None:
    first, again, other = soak(2).timeline(), soak(2).timeline(), soak(2, 2).timeline()
    assert first == again != other


def test_recordings_are_linked_until_there_are_enough_events(tmp_path) -> None:
    total = record(tmp_path, 5000, 2, rounds=1)
    files = sorted(tmp_path.iterdir())
    assert total == sum(len(load(file)) for file in files) >= 5000
    assert {file.name for file in files} > {"soak-0-0.jsonl", "soak-1-0.jsonl", "soak-0-1.jsonl"}
    assert len({file.read_bytes() for file in files}) == 2
