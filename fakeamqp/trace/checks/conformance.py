"""Violations of the protocol."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from fakeamqp.trace.checks.rows import Check, Record, TraceRow, found


class ConformanceRule(NamedTuple):
    """A rule: its id in the specification, if it is in there, and what violates it."""

    spec: str | None
    description: str


RULES: dict[str, ConformanceRule] = {
    name: ConformanceRule(*rule)
    for name, rule in {
        "channel-not-open": ("0-9-1/channel/not-open", "a frame on a channel that is not open"),
        "after-channel-close": ("0-9-1/channel/grammar", "a frame from a peer that has closed the channel"),
        "after-connection-close": (
            "0-9-1/connection.close/stability",
            "a frame from a peer that has closed the connection",
        ),
        "content-unannounced": (
            "0-9-1/content/unsolicited-header",
            "a content header without a method, or a body without a header",
        ),
        "content-overrun": ("0-9-1/content/body-overrun", "more bytes of body than the header announced"),
        "content-incomplete": ("0-9-1/content/incomplete", "another frame before the content was complete"),
        "tag-zero": ("0-9-1/domain.delivery-tag/non-zero", "a delivery whose tag is 0"),
        "tag-not-increasing": (None, "a delivery whose tag is not above the earlier ones of the channel"),
        "delivery-without-consumer": (
            "0-9-1/basic.consume/consume-ok-first",
            "a delivery to a consumer before its basic.consume-ok",
        ),
        "delivery-after-cancel": ("0-9-1/basic.cancel/stops", "a delivery to a consumer that was cancelled"),
        "delivery-made-up": (None, "a delivery frame for which no queue made a delivery"),
        "delivery-not-sent": (None, "a delivery of a queue that was not sent to the client"),
        "settles-nothing": (
            "0-9-1/basic.ack/multiple-exists",
            "a settlement of a tag that was not delivered",
        ),
        "settles-no-ack": (
            "0-9-1/domain.no-ack/ack-after-no-ack",
            "a settlement of a delivery that needs none (no-ack)",
        ),
        "settled-twice": ("0-9-1/basic.ack/multiple-exists", "a second settlement of one delivery"),
        "settlement-made-up": (None, "a queue settled a message that it had not delivered"),
        "settlement-repeated": (None, "a queue settled a message for the second time"),
        "confirm-unknown": (None, "a confirm without a publish"),
        "confirmed-twice": (None, "a second confirm of one publish"),
        "unconfirmed": (None, "a publish without a confirm, while a later publish was confirmed"),
    }.items()
}


class Conformance(Check):
    """Finds violations of the protocol in the rows of one run. Other protocols than 0-9-1 are skipped."""

    def __init__(self) -> None:
        self._others: set[str] = set()
        self._opened: set[str] = set()
        self._closing: set[tuple[str, str | None]] = set()
        self._closed: set[tuple[str, str | None]] = set()
        self._senders: defaultdict[Any, Sender] = defaultdict(Sender)
        self._channels: defaultdict[Any, Channel] = defaultdict(Channel)

    def see(self, row: TraceRow) -> Iterator[dict[str, Any]]:
        if row.kind == "connection" and row.name == "connected":
            other = "AMQP " in row.text and "AMQP 0-0-9-1" not in row.text
            (self._others if other else self._opened).add(row.alias)
        if row.alias not in self._others:
            for rule in self._broken_by(row):
                yield _violation(row, rule)

    def end(self) -> Iterator[dict[str, Any]]:
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
        **row.values("run", "number", "time", "alias", "channel", "session"),
        "rule": rule,
        "broken_by": "client" if row.received and rule != "unconfirmed" else "broker",
        "spec": RULES[rule].spec,
        "description": RULES[rule].description,
        **row.values("name", "delivery_tag", "consumer_tag"),
    }


_SETTLED = frozenset(("acked", "rejected", "requeued"))


class Channel:
    """The state of one channel, from the frames of both peers and the events of the queues."""

    def __init__(self) -> None:
        self._closed = False
        # Deliveries, by tag.
        self._frames: dict[int | None, int] = {}
        self._made: dict[int | None, list[TraceRow]] = {}
        self._no_ack: dict[int | None, bool | None] = {}
        self._latest_tag = -1
        self._ended: dict[int | None, str] = {}
        # Settlements by the client.
        self._settlements: set[int | None] = set()
        self._settled_up_to: int | None = None
        self._rolled_back = False
        # By consumer tag: whether deliveries are allowed, and whether they are no-ack. A get has the tag
        # None.
        self._consuming: dict[str | None, bool] = {}
        self._needs_no_ack: dict[str | None, bool] = {}
        # Publishes and their confirms.
        self._confirming = False
        self._publishes: list[TraceRow] = []
        self._confirms: set[int] = set()
        self._confirmed_up_to = 0

    def broken_by(self, row: TraceRow, *, ignored: bool) -> Iterator[str]:
        """The rules that this event violates. `ignored`: the broker has closed, and ignores the client."""
        if row.kind == "model":
            yield from self._model(row)
        elif row.kind == "frame" and row.direction == "sent":
            yield from self._sent(row)
        elif row.kind == "frame":
            yield from self._received(row, ignored)

    def left_open(self) -> Iterator[tuple[TraceRow, str]]:
        """The events that need a later event which is not in the trace, and the rules that this violates."""
        for tag, rows in self._made.items():
            if not self._frames.get(tag):
                for row in rows:
                    yield row, "delivery-not-sent"
        latest = max(self._confirms, default=0)
        for number, row in enumerate(self._publishes, 1):
            if number not in self._confirms and self._confirmed_up_to < number < latest:
                yield row, "unconfirmed"

    def _model(self, row: TraceRow) -> Iterator[str]:
        tag = row.delivery_tag
        if row.name == "consumer added" and row.no_ack is not None:
            self._needs_no_ack[row.consumer_tag] = row.no_ack
        elif row.name == "delivered":
            self._made.setdefault(tag, []).append(row)
            self._ended[tag] = row.name
        elif row.name in _SETTLED:
            if tag not in self._ended:
                yield "settlement-made-up"
            elif self._ended[tag] != "delivered":
                yield "settlement-repeated"
            self._ended[tag] = row.name

    def _sent(self, row: TraceRow) -> Iterator[str]:
        if row.name in ("basic.deliver", "basic.get-ok"):
            yield from self._delivery(row, row.delivery_tag or 0)
        elif row.name in ("basic.ack", "basic.nack"):
            yield from self._confirm(row, row.delivery_tag or 0)
        elif row.name in ("basic.consume-ok", "basic.cancel", "basic.cancel-ok"):
            self._consuming[row.consumer_tag] = row.name == "basic.consume-ok"
        elif row.name == "channel.close":
            self._closed = True

    def _delivery(self, row: TraceRow, tag: int) -> Iterator[str]:
        if tag == 0:
            yield "tag-zero"
        elif tag <= self._latest_tag:
            yield "tag-not-increasing"
        self._latest_tag = max(tag, self._latest_tag)
        if row.name == "basic.deliver" and not self._consuming.get(row.consumer_tag):
            known = row.consumer_tag in self._consuming
            yield "delivery-after-cancel" if known else "delivery-without-consumer"
        self._frames[tag] = self._frames.get(tag, 0) + 1
        if self._frames[tag] > len(self._made.get(tag, ())):
            yield "delivery-made-up"
        no_ack = self._needs_no_ack.get(row.consumer_tag)
        if no_ack is not None:
            self._no_ack[tag] = no_ack

    def _confirm(self, row: TraceRow, tag: int) -> Iterator[str]:
        if tag == 0 or tag > len(self._publishes):
            yield "confirm-unknown"
        elif tag in self._confirms or tag <= self._confirmed_up_to:
            yield "confirmed-twice"
        self._confirms.add(tag)
        if row.multiple:
            self._confirmed_up_to = max(self._confirmed_up_to, tag)

    def _received(self, row: TraceRow, ignored: bool) -> Iterator[str]:
        if row.name in ("basic.ack", "basic.nack", "basic.reject"):
            yield from self._settlement(row, row.delivery_tag or 0, ignored)
        elif row.name in ("basic.recover", "basic.recover-async") and row.requeue:
            self._settle_up_to(self._latest_tag)
        elif row.name == "tx.rollback":
            self._rolled_back = True
        elif row.name == "basic.get" and row.no_ack is not None:
            self._needs_no_ack[None] = row.no_ack
        elif row.name in ("basic.consume", "basic.cancel") and row.no_wait:
            self._consuming[row.consumer_tag] = row.name == "basic.consume"
        elif row.name == "confirm.select":
            self._confirming = True
        elif row.name == "basic.publish" and self._confirming:
            self._publishes.append(row)

    def _settlement(self, row: TraceRow, tag: int, ignored: bool) -> Iterator[str]:
        everything = row.multiple and tag == 0
        if not (everything or self._closed or ignored):
            up_to = self._settled_up_to
            settled = tag in self._settlements or (up_to is not None and tag <= up_to)
            if not self._frames.get(tag):
                yield "settles-nothing"
            elif self._no_ack.get(tag):
                yield "settles-no-ack"
            elif settled and not self._rolled_back:
                yield "settled-twice"
        self._settlements.add(tag)
        if row.multiple:
            self._settle_up_to(self._latest_tag if everything else tag)

    def _settle_up_to(self, tag: int) -> None:
        self._settled_up_to = tag if self._settled_up_to is None else max(tag, self._settled_up_to)


_WITH_CONTENT = frozenset(("basic.publish", "basic.deliver", "basic.get-ok", "basic.return"))
_CONTENT = frozenset(("content header", "content body"))
_CLOSES = frozenset(("channel.close", "channel.close-ok"))


class Sender:
    """The state of one peer on one channel, from the frames that it sends."""

    def __init__(self) -> None:
        self._before: str | None = None
        self._due: int | None = None
        """Bytes of body that the latest header announced and that are still missing."""
        self._closes = False
        self._closed = False

    def broken_by(self, row: TraceRow) -> Iterator[str]:
        """The rules that the next frame violates."""
        name, before = row.name, self._before
        if row.channel and (self._closed or (self._closes and name != "channel.close-ok")):
            yield "after-channel-close"
        if name == "content header":
            if before is not None and before not in _WITH_CONTENT:
                yield "content-unannounced"
            self._due = row.body_size
        elif name == "content body":
            if before is not None and before not in _CONTENT:
                yield "content-unannounced"
            elif before is not None and self._due is not None and row.size > self._due:
                yield "content-overrun"
            if self._due is not None:
                self._due -= row.size
        elif name not in _CLOSES and (
            before in _WITH_CONTENT or (before in _CONTENT and (self._due or 0) > 0)
        ):
            yield "content-incomplete"
        self._closes |= name == "channel.close"
        self._closed |= name == "channel.close-ok"
        self._before = name
