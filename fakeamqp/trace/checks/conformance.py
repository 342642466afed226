"""Violations of the protocol."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from fakeamqp.trace.checks.channels import Channel
from fakeamqp.trace.checks.frames import Sender
from fakeamqp.trace.checks.rows import Record, TraceRow, found

__all__ = ["RULES", "Conformance", "ConformanceRule", "conformance"]


class ConformanceRule(NamedTuple):
    """A rule: its id in the specification, if it is in there, and what violates it."""

    spec: str | None
    description: str


RULES: dict[str, ConformanceRule] = {
    "channel-not-open": ConformanceRule("0-9-1/channel/not-open", "a frame on a channel that is not open"),
    "after-channel-close": ConformanceRule(
        "0-9-1/channel/grammar", "a frame from a peer that has closed the channel"
    ),
    "after-connection-close": ConformanceRule(
        "0-9-1/connection.close/stability", "a frame from a peer that has closed the connection"
    ),
    "content-unannounced": ConformanceRule(
        "0-9-1/content/unsolicited-header", "a content header without a method, or a body without a header"
    ),
    "content-overrun": ConformanceRule(
        "0-9-1/content/body-overrun", "more bytes of body than the header announced"
    ),
    "content-incomplete": ConformanceRule(
        "0-9-1/content/incomplete", "another frame before the content was complete"
    ),
    "tag-zero": ConformanceRule("0-9-1/domain.delivery-tag/non-zero", "a delivery whose tag is 0"),
    "tag-not-increasing": ConformanceRule(
        None, "a delivery whose tag is not above the earlier ones of the channel"
    ),
    "delivery-without-consumer": ConformanceRule(
        "0-9-1/basic.consume/consume-ok-first", "a delivery to a consumer before its basic.consume-ok"
    ),
    "delivery-after-cancel": ConformanceRule(
        "0-9-1/basic.cancel/stops", "a delivery to a consumer that was cancelled"
    ),
    "delivery-made-up": ConformanceRule(None, "a delivery frame for which no queue made a delivery"),
    "delivery-not-sent": ConformanceRule(None, "a delivery of a queue that was not sent to the client"),
    "settles-nothing": ConformanceRule(
        "0-9-1/basic.ack/multiple-exists", "a settlement of a tag that was not delivered"
    ),
    "settles-no-ack": ConformanceRule(
        "0-9-1/domain.no-ack/ack-after-no-ack", "a settlement of a delivery that needs none (no-ack)"
    ),
    "settled-twice": ConformanceRule(
        "0-9-1/basic.ack/multiple-exists", "a second settlement of one delivery"
    ),
    "settlement-made-up": ConformanceRule(None, "a queue settled a message that it had not delivered"),
    "settlement-repeated": ConformanceRule(None, "a queue settled a message for the second time"),
    "confirm-unknown": ConformanceRule(None, "a confirm without a publish"),
    "confirmed-twice": ConformanceRule(None, "a second confirm of one publish"),
    "unconfirmed": ConformanceRule(None, "a publish without a confirm, while a later publish was confirmed"),
}


class Conformance:
    """Finds violations of the protocol in the rows of one run. Other protocols than 0-9-1 are skipped."""

    def __init__(self) -> None:
        self._others: set[str] = set()
        self._opened: set[str] = set()
        self._closing: set[tuple[str, str | None]] = set()
        self._closed: set[tuple[str, str | None]] = set()
        self._senders: defaultdict[Any, Sender] = defaultdict(Sender)
        self._channels: defaultdict[Any, Channel] = defaultdict(Channel)

    def see(self, row: TraceRow) -> Iterator[dict[str, Any]]:
        """The violations that the next row shows."""
        if row.kind == "connection" and row.name == "connected":
            other = "AMQP " in row.text and "AMQP 0-0-9-1" not in row.text
            (self._others if other else self._opened).add(row.alias)
        if row.alias not in self._others:
            for rule in self._broken_by(row):
                yield _violation(row, rule)

    def end(self) -> Iterator[dict[str, Any]]:
        """The violations that the end of the run shows."""
        for channel in self._channels.values():
            for row, rule in channel.left_open():
                yield _violation(row, rule)

    def _broken_by(self, row: TraceRow) -> Iterator[str]:
        peer = (row.alias, row.direction)
        broker = (row.alias, "sent")
        broker_ended = broker in self._closing or broker in self._closed
        if row.kind == "frame" and row.name != "heartbeat":
            if (
                row.channel
                and not row.session
                and row.alias in self._opened
                and not (row.received and broker_ended)
            ):
                yield "channel-not-open"
            if peer in self._closed or (peer in self._closing and row.name != "connection.close-ok"):
                yield "after-connection-close"
            yield from self._senders[row.place, row.direction].broken_by(row)
            if row.name == "connection.close":
                self._closing.add(peer)
            elif row.name == "connection.close-ok":
                self._closed.add(peer)
        if row.channel and row.session:
            yield from self._channels[row.place].broken_by(row, ignored=broker_ended)


def conformance(records: Iterable[Record]) -> list[dict[str, Any]]:
    """The rows of `Traces.conformance`, as dictionaries."""
    return sorted(found(Conformance, records), key=lambda each: (each["run"], each["number"], each["rule"]))


def _violation(row: TraceRow, rule: str) -> dict[str, Any]:
    return {
        "run": row.run,
        "number": row.number,
        "time": row.time,
        "alias": row.alias,
        "channel": row.channel,
        "session": row.session,
        "rule": rule,
        "broken_by": "client" if row.received and rule != "unconfirmed" else "broker",
        "spec": RULES[rule].spec,
        "description": RULES[rule].description,
        "name": row.name,
        "delivery_tag": row.delivery_tag,
        "consumer_tag": row.consumer_tag,
    }
