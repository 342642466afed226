"""Violations of the protocol; the twin of `conformance.sql`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from fakeamqp.spark.traces.twins.channels import Channel
from fakeamqp.spark.traces.twins.frames import Sender
from fakeamqp.spark.traces.twins.records import Record, Row, runs

__all__ = ["RULES", "Rule", "conformance"]


class Rule(NamedTuple):
    """What breaks a rule, in words, and the id of the rule in the documents where there is one."""

    spec: str | None
    says: str


RULES: dict[str, Rule] = {
    "channel-not-open": Rule("0-9-1/channel/not-open", "a frame on a channel that nobody has opened"),
    "after-channel-close": Rule("0-9-1/channel/grammar", "a frame from the peer that has closed the channel"),
    "after-connection-close": Rule(
        "0-9-1/connection.close/stability", "a frame from the peer that has closed the connection"
    ),
    "content-unannounced": Rule(
        "0-9-1/content/unsolicited-header", "a content header without a method, or a body without a header"
    ),
    "content-overrun": Rule("0-9-1/content/body-overrun", "more bytes of body than the header announced"),
    "content-incomplete": Rule(
        "0-9-1/content/incomplete", "another frame where the rest of a content was due"
    ),
    "tag-zero": Rule("0-9-1/domain.delivery-tag/non-zero", "a delivery whose tag is 0"),
    "tag-not-increasing": Rule(None, "a delivery whose tag is not above those before it on the channel"),
    "delivery-without-consumer": Rule(
        "0-9-1/basic.consume/consume-ok-first", "a delivery to a consumer that has not been confirmed"
    ),
    "delivery-after-cancel": Rule("0-9-1/basic.cancel/stops", "a delivery to a consumer that was cancelled"),
    "delivery-made-up": Rule(None, "the frame of a delivery that no queue made"),
    "delivery-not-sent": Rule(None, "a queue made a delivery and no frame told the client"),
    "settles-nothing": Rule(
        "0-9-1/basic.ack/multiple-exists", "a settlement of a tag that was not delivered"
    ),
    "settles-no-ack": Rule(
        "0-9-1/domain.no-ack/ack-after-no-ack", "a settlement of a delivery that needed none"
    ),
    "settled-twice": Rule("0-9-1/basic.ack/multiple-exists", "a second settlement of one delivery"),
    "settlement-made-up": Rule(None, "a message was settled that was not delivered"),
    "settlement-repeated": Rule(None, "a message was settled again that had been settled"),
    "confirm-unknown": Rule(None, "a confirm of a publish that there was not"),
    "confirmed-twice": Rule(None, "a second confirm of one publish"),
    "unconfirmed": Rule(None, "a publish that was not confirmed, while a later one was"),
}


def conformance(records: Iterable[Record]) -> list[dict[str, Any]]:
    """What `Traces.conformance` returns, as dictionaries."""
    return [
        {
            "run": row.run,
            "number": row.number,
            "time": row.time,
            "alias": row.alias,
            "channel": row.channel,
            "session": row.session,
            "rule": rule,
            "broken_by": "client" if row.received and rule != "unconfirmed" else "broker",
            "spec": RULES[rule].spec,
            "says": RULES[rule].says,
            "name": row.name,
            "delivery_tag": row.delivery_tag,
            "consumer_tag": row.consumer_tag,
        }
        for run in runs(records)
        for row, rule in sorted(_broken(_judged(run)), key=lambda each: (each[0].number, each[1]))
    ]


def _judged(run: list[Row]) -> list[Row]:
    """What connections have to do with that speak 0-9-1, or may: the rules are of that."""
    strangers = {
        row.alias
        for row in run
        if row.kind == "connection"
        and row.name == "connected"
        and "AMQP " in row.text
        and "AMQP 0-0-9-1" not in row.text
    }
    return [row for row in run if row.alias not in strangers]


def _broken(run: list[Row]) -> Iterator[tuple[Row, str]]:
    """Rows and the rules they break."""
    opened = {row.alias for row in run if row.kind == "connection" and row.name == "connected"}
    closing: set[tuple[str, str | None]] = set()
    closed: set[tuple[str, str | None]] = set()
    senders: defaultdict[Any, Sender] = defaultdict(Sender)
    channels: defaultdict[Any, Channel] = defaultdict(Channel)
    for row in run:
        peer = (row.alias, row.direction)
        broker = (row.alias, "sent")
        broker_ended = broker in closing or broker in closed
        if row.kind == "frame" and row.name != "heartbeat":
            if (
                row.channel
                and not row.session
                and row.alias in opened
                and not (row.received and broker_ended)
            ):
                yield row, "channel-not-open"
            if peer in closed or (peer in closing and row.name != "connection.close-ok"):
                yield row, "after-connection-close"
            for rule in senders[row.place, row.direction].broken_by(row):
                yield row, rule
            if row.name == "connection.close":
                closing.add(peer)
            elif row.name == "connection.close-ok":
                closed.add(peer)
        if row.channel and row.session:
            for rule in channels[row.place].broken_by(row, unheard=broker_ended):
                yield row, rule
    for channel in channels.values():
        yield from channel.left_open()
