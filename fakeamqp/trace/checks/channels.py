"""One channel from its opening to its close, as `conformance` sees it."""

from __future__ import annotations

from collections.abc import Iterator

from fakeamqp.trace.checks.rows import TraceRow

__all__ = ["Channel"]

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
        """The rules that this event violates.

        `ignored` is True once the broker has closed the connection and ignores what the client sends.
        """
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
