"""The scenarios of AMQP 1.0 on RabbitMQ: frame by frame as on the personality, but for what is listed."""

from __future__ import annotations

import pytest

from compat_tests.differential.amqp_1_0.compare import compare
from compat_tests.differential.amqp_1_0.scenarios import SCENARIOS
from compat_tests.differential.comparison import SERIES, Series, SideBySide

NO_FILTERS = "property filters and SQL filters are not spoken, so they are not offered"
COUNTED_LATE = "RabbitMQ counts the messages of a stream some seconds later"
HEADER = "streams of RabbitMQ keep a header that does not say whether the message is durable"
ORDER = "the annotations of a modified outcome come behind those of the broker"
FAILURES = "the header of RabbitMQ 4.0 counts failures apart from returns"
ROOM = "RabbitMQ 4.0 leaves some bytes of each frame of a message free"
VERSION_1 = "addresses of version 1 are not spoken, where RabbitMQ 4.0 takes them"

DIFFERENCES: dict[str, dict[str, str]] = {
    "4.0": {
        "sources-exchange": VERSION_1,
        "publish-stream": COUNTED_LATE,
        "passes-counted_stream": HEADER,
        "outcomes-annotated_quorum": ORDER,
        "outcomes-failed_quorum": FAILURES,
        "dead_letters-rejected_quorum": FAILURES,
        "dead_letters-failed_undeliverable_quorum": FAILURES,
        "split_deliveries": ROOM,
    },
    "4.3": {
        "attach_receiver-stream": NO_FILTERS,
        **{f"offsets-{name}": NO_FILTERS for name in ("first", "last", "next", "number", "bare")},
        **{f"stream_filters-{name}": NO_FILTERS for name in ("one", "several", "none")},
        **{f"odd_filters-{name}": NO_FILTERS for name in ("undescribed", "unknown")},
        "publish-stream": COUNTED_LATE,
        "passes-counted_stream": HEADER,
        "outcomes-annotated_quorum": ORDER,
    },
}
"""By series: the scenarios that differ, and why."""


TIMING = {"publish-stream", "offsets-last", "lost-close"}
"""What depends on when RabbitMQ has counted, has ended a chunk of a stream, or has requeued."""


@pytest.mark.parametrize("series", [each for each in SERIES.values() if each.name in DIFFERENCES], ids=str)
def test_scenarios_are_those_of_the_node(series: Series, beside: SideBySide) -> None:
    found = compare(SCENARIOS, series.personality, beside.node.port, beside.node)
    differ = {name for name, each in found.items() if each.differs}
    assert differ - TIMING == DIFFERENCES[series.name].keys() - TIMING
