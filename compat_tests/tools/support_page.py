"""Writes the table of arguments in docs/support.md: `python -m compat_tests.tools.support_page`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from compat_tests.tools import tables
from fakeamqp.model.personality import PERSONALITIES, Personality

__all__ = ["PAGE", "WORDS", "main", "with_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "support.md"
VERSIONS = [each for each in PERSONALITIES.values() if each.product == "RabbitMQ"]

_ONE_NODE = "checked; without effect, because there is one node"

WORDS = {
    "x-message-ttl": "messages expire after so many milliseconds; [time](time.md) moves the clock",
    "x-expires": "the queue is deleted when it is unused",
    "x-dead-letter-exchange": "dead letters, with `x-death` as in the version of RabbitMQ",
    "x-dead-letter-routing-key": "the routing key of dead letters",
    "x-dead-letter-strategy": "`at-least-once`: the queue holds a dead letter until its target has it",
    "x-max-length": "the limit of ready messages",
    "x-max-length-bytes": "the limit in bytes; of a stream, its retention",
    "x-overflow": "`drop-head`, `reject-publish`, `reject-publish-dlx`",
    "x-max-priority": "priorities of messages",
    "x-single-active-consumer": "one consumer at a time; with priorities of consumers",
    "x-delivery-limit": "a message that returns more often than this becomes a dead letter",
    "x-consumer-timeout": "the time in which a consumer has to ack",
    "x-consumer-disconnected-timeout": _ONE_NODE,
    "x-delayed-retry-type": "a rejected message waits before it is delivered again",
    "x-delayed-retry-min": "the shortest wait of a rejected message",
    "x-delayed-retry-max": "the longest wait of a rejected message",
    "x-queue-type": "`classic`, `quorum`, `stream`",
    "x-queue-mode": "checked where RabbitMQ checks it; without effect",
    "x-queue-version": "checked; without effect",
    "x-max-age": "the retention of a stream",
    "x-stream-max-segment-size-bytes": "the size of the segments that retention drops",
    "x-stream-filter-size-bytes": "checked; a filter passes exactly the messages that match",
    "x-max-in-memory-length": "checked; without effect",
    "x-max-in-memory-bytes": "checked; without effect",
    "x-quorum-initial-group-size": _ONE_NODE,
    "x-initial-cluster-size": _ONE_NODE,
    "x-queue-leader-locator": _ONE_NODE,
    "x-queue-master-locator": _ONE_NODE,
    "x-priority": "a consumer with a higher priority gets messages first",
    "x-stream-offset": "`first`, `last`, `next`, an offset, a time, an interval",
    "x-stream-filter": "the consumer gets the messages with these filter values",
    "x-stream-match-unfiltered": "the consumer also gets messages without a filter value",
}
"""What the broker does about each argument of a queue or a consumer."""

_OTHERS = [
    ("`alternate-exchange`", "exchanges", "receives messages that cannot be routed"),
    (
        "`x-delayed-message`, `x-delay`",
        "exchanges, messages",
        "delayed messages, as with the plugin; advance the clock",
    ),
    ("`x-consistent-hash`, `x-modulus-hash`", "exchanges", "with the hashes of RabbitMQ"),
    ("`x-random`, `x-local-random`", "exchanges", "the draws come from `Broker(seed=…)`"),
    ("`x-match`", "bindings of headers exchanges", "`all`, `any`, `all-with-x`, `any-with-x`"),
    ("`CC`, `BCC`", "headers of messages", "further routing keys"),
    ("`amq.rabbitmq.reply-to`", "consumers, messages", "direct reply-to"),
    ("`mandatory`, `basic.return`", "publishes", "unroutable messages come back"),
    ("`confirm.select`", "channels", "publisher confirms, and `basic.nack`"),
]


def _by_name(records: list[Mapping[str, tuple[str, ...]]], suffix: str) -> dict[str, str]:
    """For each argument of the newest version: where it may stand, and since when."""
    newest = records[-1]
    return {
        name: ", ".join(kind for kind in newest if name in newest[kind]) + suffix + _since(records, name)
        for name in dict.fromkeys(name for names in newest.values() for name in names)
    }


def _since(records: list[Mapping[str, tuple[str, ...]]], name: str) -> str:
    """From which version on, if not in all of them."""
    having = [
        version.name.removeprefix("rabbitmq-")
        for version, record in zip(VERSIONS, records, strict=True)
        if any(name in names for names in record.values())
    ]
    return "" if len(having) == len(VERSIONS) else f", since {having[0]}"


def rows(versions: list[Personality] = VERSIONS) -> list[list[str]]:
    """A row for each argument."""
    queues = _by_name([each.queue_arguments for each in versions], " queues")
    consumers = _by_name([each.consumer_arguments for each in versions], " queues' consumers")
    where = {name: [queues[name]] if name in queues else [] for name in {**queues, **consumers}}
    for name, each in consumers.items():
        where[name].append(each)
    order = {name: place for place, name in enumerate(WORDS)}
    return [
        [f"`{name}`", "; ".join(where[name]), WORDS[name]]
        for name in sorted(where, key=lambda name: order[name])
    ]


def _arguments() -> str:
    return tables.table(["Name", "Of", "Here"], [*map(list, _OTHERS), *rows()])


def with_tables(page: str) -> str:
    """The page with its table as it should be."""
    return tables.with_tables(page, {"arguments": _arguments})


def main() -> None:
    """Write the page."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
