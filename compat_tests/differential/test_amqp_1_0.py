"""AMQP 1.0 on RabbitMQ beside its personality: scenarios and random programs, but for what is listed."""

from __future__ import annotations

import pytest

from compat_tests.differential.amqp_1_0 import programs
from compat_tests.differential.amqp_1_0.compare import LOOKS, compare
from compat_tests.differential.amqp_1_0.scenarios import SUBJECTS
from compat_tests.differential.comparison import SERIES, Series, SideBySide
from compat_tests.fuzz.profile import FACTOR

pytestmark = pytest.mark.timeout(900 * max(1, FACTOR))

COUNTED_LATE = "RabbitMQ counts the messages of a stream some seconds later"
BINARY = (
    "streams take a binary header of 0-9-1 for a long string, also for 1.0, and keep one in a list as it is"
)
TWICE = "a field table with two fields of one name becomes a map with the first one only"
STREAMED = "RabbitMQ's streams also write again what the conversion to 1.0 changes in properties of 0-9-1"
KEPT = "a session of RabbitMQ keeps the rights that it has checked, also for what is published later"
UNPLAYED = "the series refuses what the scenario needs, on both sides"
ODD = "RabbitMQ 4.0 crashes at an annotation section that is a list, and at infinite numbers"
REQUEUED = "the header of RabbitMQ 4.0 does not count what 0-9-1 rejects and requeues"
UNCHECKED = (
    "RabbitMQ 4.0 takes an alternate exchange that is no text, and shows the bindings of the default one"
)

DIFFERENCES: dict[str, dict[str, str]] = {
    "4.0": {
        "publish-stream": COUNTED_LATE,
        "binaries_converted-stream": BINARY,
        "fields_twice": TWICE,
        "basic_converted-stream": STREAMED,
        "permission_taken_away": KEPT,
        "odd_sections-list": ODD,
        "odd_sections-infinite": ODD,
        "dynamic_reply_queue": UNPLAYED,
        "reply_to_credit": UNPLAYED,
        "older_returns-reject_quorum": REQUEUED,
        "requests-exchange_alternate_number": UNCHECKED,
        "requests-bindings_default": UNCHECKED,
    },
    "4.3": {
        "publish-stream": COUNTED_LATE,
        "binaries_converted-stream": BINARY,
        "fields_twice": TWICE,
        "basic_converted-stream": STREAMED,
        "permission_taken_away": KEPT,
    },
}
"""By series: the scenarios that differ, and why."""


TIMING = {"publish-stream", "offsets-last", "queue_deleted-quorum", "at_least_once-classic"}
"""What depends on when RabbitMQ has counted, has ended a chunk of a stream, or has said who is active."""

USUAL = 30
"""Random programs for each series, times the factor of `make fuzz`."""
MOST_DIFFERENT = 0.05
"""The part of the programs that may meet what docs/amqp-1-0.md lists."""

_SPOKEN = [each for each in SERIES.values() if each.name in DIFFERENCES]


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("series", _SPOKEN, ids=str)
def test_scenarios_are_those_of_the_node(series: Series, subject: str, beside: SideBySide) -> None:
    names = SUBJECTS[subject]
    found = compare(names, series.personality, beside.node.port, beside.node)
    differ = {name for name, each in found.items() if each.differs}
    assert differ - TIMING == DIFFERENCES[series.name].keys() & set(names) - TIMING


@pytest.mark.parametrize("series", _SPOKEN, ids=str)
def test_random_programs_have_same_effects_as_on_the_node(series: Series, beside: SideBySide) -> None:
    played = {programs.name_of(seed): programs.played(seed) for seed in range(int(USUAL * max(1, FACTOR)))}
    found = compare(played, series.personality, beside.node.port, beside.node, LOOKS[:2], scenarios=played)
    differ = [name for name, each in found.items() if each.differs]
    assert len(differ) <= MOST_DIFFERENT * len(found), differ
