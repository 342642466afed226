from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fakeamqp.model.arguments.queue_arguments import QueueOptions
from fakeamqp.model.dead_letters import dead_lettered, is_cycle
from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.messages.message import Message, plain_properties
from fakeamqp.model.personality import PERSONALITIES
from fakeamqp.model.queues import DeathReason
from fakeamqp.model.routing import Copies, carbon_copies, without_blind_copies


def queue(name: str, *, at: float = 12.7, **options: Any) -> Any:
    """As much of a queue as dead-lettering looks at, at this time."""
    options.setdefault("dead_letter_exchange", "dlx")
    clock = SimpleNamespace(time=lambda: at)
    virtual_host = SimpleNamespace(state=SimpleNamespace(personality=PERSONALITIES["spec"], clock=clock))
    return cast(Any, SimpleNamespace(name=name, options=QueueOptions(**options), virtual_host=virtual_host))


def message(**properties: Any) -> Message:
    return Message("x", "k", plain_properties(**properties), b"body", expiry=1.0)


def history(dead: Message) -> list[tuple[str, str, int]]:
    assert dead.history is not None
    return [(each.queue, each.reason, each.times) for each in dead.history.deaths]


def after(*deaths: tuple[str, DeathReason]) -> Message:
    """A message that died so."""
    dead = message()
    for time, (name, reason) in enumerate(deaths):
        dead = dead_lettered(queue(name, at=time), dead, reason)
    return dead


def test_dead_lettering_creates_new_message_and_leaves_original_unchanged() -> None:
    original = message(headers={"h": 1}, expiration="1000", app_id="a")
    dead = dead_lettered(queue("q"), original, "expired")
    assert (dead.exchange, dead.routing_key, dead.body) == ("dlx", "k", b"body")
    assert (dead.expiry, dead.properties.expiration, dead.properties.app_id) == (None, None, "a")
    assert original.headers == {"h": 1}
    assert original.properties.expiration == "1000"
    assert original.history is None


def test_x_death_entry_records_origin_of_expired_message() -> None:
    dead = dead_lettered(queue("q"), message(expiration="1000"), "expired")
    (entry,) = dead.headers["x-death"]
    assert entry["time"].timestamp() == 12
    assert entry["time"].utcoffset() == timedelta(0)
    assert {**entry, "time": None} == {
        "original-expiration": "1000",
        "count": 1,
        "reason": "expired",
        "queue": "q",
        "time": None,
        "exchange": "x",
        "routing-keys": ["k"],
    }


def test_dead_letter_routing_key_of_queue_replaces_key_of_message() -> None:
    assert dead_lettered(queue("q", dead_letter_routing_key="other"), message(), "maxlen").routing_key == (
        "other"
    )


def test_dead_letter_keeps_carbon_copies_unless_queue_sets_routing_key() -> None:
    original = message()
    original.copies = Copies(("cc",), ("bcc",))
    along = dead_lettered(queue("q"), original, "rejected")
    assert along.copies == original.copies
    assert along.headers["x-death"][0]["routing-keys"] == ["k", "cc"]
    replaced = dead_lettered(queue("q", dead_letter_routing_key="other"), original, "rejected")
    assert replaced.copies is None
    assert replaced.headers["x-death"][0]["routing-keys"] == ["k", "cc"]


def test_deaths_are_ordered_by_recency_and_counted_by_queue_and_reason() -> None:
    dead = after(("a", "rejected"), ("b", "expired"), ("a", "expired"), ("b", "expired"), ("a", "rejected"))
    assert history(dead) == [("a", "rejected", 2), ("b", "expired", 2), ("a", "expired", 1)]
    assert dead.history is not None
    assert [each.time for each in dead.history.deaths] == [0, 1, 2]
    assert (dead.history.first.queue, dead.history.first.reason) == ("a", "rejected")


@pytest.mark.parametrize(
    ("deaths", "target", "expected"),
    [
        ([], "q", False),
        ([("q", "expired")], "q", True),
        ([("q", "expired")], "other", False),
        ([("q", "maxlen"), ("r", "expired")], "q", True),
        ([("q", "rejected")], "q", False),
        ([("q", "expired"), ("r", "rejected")], "q", False),
        ([("q", "rejected"), ("r", "expired")], "q", False),
        ([("outside", "rejected"), ("q", "expired"), ("r", "expired")], "q", True),
        ([("q", "rejected"), ("r", "expired"), ("q", "expired")], "q", True),
        ([("q", "expired"), ("r", "rejected"), ("q", "expired")], "q", True),
        ([("q", "expired"), ("r", "rejected"), ("q", "expired")], "r", False),
    ],
)
def test_dead_letter_cycle_is_judged_by_deaths_since_last_visit_to_queue(
    deaths: list[tuple[str, DeathReason]], target: str, expected: bool
) -> None:
    assert is_cycle(target, after(*deaths)) is expected


# --- carbon copies -----------------------------------------------------------------------------------


def test_carbon_copies_separates_cc_and_bcc_headers() -> None:
    copies = carbon_copies({"CC": ["a", 1, "b"], "BCC": ["c"], "cc": ["d"]})
    assert copies == Copies(("a", "b"), ("c",))
    assert copies.keys == ("a", "b", "c")


def test_message_without_cc_headers_has_no_carbon_copies() -> None:
    assert carbon_copies({}) == Copies((), ())


def test_bcc_header_not_of_type_array_is_refused() -> None:
    with pytest.raises(PreconditionFailed, match=r'\{unacceptable_type_in_header,"BCC",bool\}'):
        carbon_copies({"CC": [], "BCC": True})


def test_only_bcc_header_is_removed_from_message() -> None:
    original = message(headers={"CC": ["a"], "BCC": ["b"], "h": 1})
    assert without_blind_copies(original) is original  # The headers mean nothing until they are read.
    original.copies = carbon_copies(original.headers)
    plain = without_blind_copies(original)
    assert plain.headers == {"CC": ["a"], "h": 1}
    assert plain.copies == original.copies
    assert plain.expiry == original.expiry
    assert without_blind_copies(plain) is plain
