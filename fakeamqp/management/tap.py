"""The tap that counts for the API, in front of the trace's recorder. See `fakeamqp.model.tap.Tap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fakeamqp.faults.next_tap import NullTap

if TYPE_CHECKING:
    from fakeamqp.faults.next_tap import NextTap
    from fakeamqp.management.counters import Statistics

__all__ = ["CountingTap"]

_METHOD = 1
_FRAME_OVERHEAD = 8
_PUBLISH = b"\x00\x3c\x00\x28"
_GET = b"\x00\x3c\x00\x46"
_GET_EMPTY = b"\x00\x3c\x00\x48"
_CONFIRM_SELECT = b"\x00\x55\x00\x0a"
_CHANNEL_OPEN = b"\x00\x14\x00\x0a"
_CHANNEL_CLOSE = b"\x00\x14\x00\x28"
_CLOSING_EVENTS = frozenset(("closed", "aborted", "lost"))
_CHURN = {
    "queue declared": ("queue_declared", "queue_created"),
    "queue deleted": ("queue_deleted",),
}


class CountingTap:
    """Counts what passes, and passes it on.

    Args:
        statistics: the counts.
        time: the broker's wall time.
        following: the recorder of the trace; None without one.
    """

    def __init__(self, statistics: Statistics, time: Callable[[], float], following: NextTap | None) -> None:
        self._statistics = statistics
        self._time = time
        self._next: NextTap = NullTap() if following is None else following
        self.confirms_singly: bool = self._next.confirms_singly
        self._no_ack: dict[tuple[str, int, str], bool] = {}
        """Whether each consumer takes messages without acknowledging them."""
        self._gets: dict[tuple[str, int], bool] = {}
        """The same of the latest basic.get of a channel."""
        self._confirming: dict[tuple[str, int], bool] = {}
        """The channels in confirm mode."""
        self._open: dict[str, set[int]] = {}
        """The open channels of each connection that has not ended."""

    def received(self, connection: Any, frame_type: int, channel: int, payload: bytes) -> bool | None:
        """A frame from a client."""
        statistics = self._statistics
        now = statistics.now()
        counts = statistics.connections[connection.name]
        counts.add("recv_oct", now, len(payload) + _FRAME_OVERHEAD)
        counts.add("recv_cnt", now)
        if frame_type == _METHOD:
            method = payload[:4]
            if method == _PUBLISH:
                counts = statistics.channels[connection.name, channel]
                counts.add("publish", now)
                if (connection.name, channel) in self._confirming:
                    vhost = connection.virtual_host_name
                    statistics.of_message(
                        "confirm", virtual_host=vhost, connection=connection.name, channel=channel
                    )
            elif method == _CONFIRM_SELECT:
                self._confirming[connection.name, channel] = True
            elif method == _GET:
                self._gets[connection.name, channel] = bool(payload[-1] & 1)
            elif method == _CHANNEL_OPEN:
                numbers = self._open.get(connection.name)
                if numbers is not None and channel not in numbers:
                    numbers.add(channel)
                    statistics.churn.add("channel_created", now)
            elif method == _CHANNEL_CLOSE:
                self._end_channel(connection.name, channel)
        return self._next.received(connection, frame_type, channel, payload)

    def sending(self, connection: Any, octets: bytes) -> bytes:
        """Frames for a client."""
        statistics = self._statistics
        now = statistics.now()
        counts = statistics.connections[connection.name]
        counts.add("send_oct", now, len(octets))
        counts.add("send_cnt", now)
        if octets[7:11] == _GET_EMPTY:
            statistics.of_message(
                "get_empty",
                virtual_host=connection.virtual_host_name,
                connection=connection.name,
                channel=int.from_bytes(octets[1:3], "big"),
            )
        elif octets[7:11] == _CHANNEL_CLOSE:
            self._end_channel(connection.name, int.from_bytes(octets[1:3], "big"))
        return self._next.sending(connection, octets)

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        """A connection begins or ends. One that was never opened is counted as closed only (measured)."""
        statistics = self._statistics
        if event == "connected":
            statistics.connected_at[connection] = self._time()
            self._open[connection] = set()
        elif event == "opened":
            statistics.churn.add("connection_created", statistics.now())
        elif event == "refused":
            statistics.churn.add("connection_closed", statistics.now())
        elif event in _CLOSING_EVENTS and connection in self._open:
            for number in tuple(self._open[connection]):
                self._end_channel(connection, number)
            del self._open[connection]
            statistics.churn.add("connection_closed", statistics.now())
            statistics.forget_connection(connection)
            self._forget(connection)
        self._next.connection(connection, event, detail)

    def _end_channel(self, connection: str, number: int) -> None:
        """A channel ends, for whatever reason (measured on 4.3.6); another one may have its number then."""
        if number in self._open.get(connection, ()):
            self._open[connection].remove(number)
            self._confirming.pop((connection, number), None)
            self._statistics.churn.add("channel_closed", self._statistics.now())
            self._statistics.channels.pop((connection, number), None)

    def _forget(self, connection: str) -> None:
        tables: tuple[dict[Any, bool], ...] = (self._no_ack, self._gets, self._confirming)
        for table in tables:
            for key in [key for key in table if key[0] == connection]:
                del table[key]

    def published(self, message: Any, outcome: Any, virtual_host: str) -> None:
        """A message was published."""
        statistics = self._statistics
        now = statistics.now()
        statistics.of_message("publish", virtual_host=virtual_host)
        exchange = statistics.exchanges[virtual_host, message.exchange]
        exchange.add("publish_in", now)
        queues = outcome.queues
        if queues:
            exchange.add("publish_out", now, len(queues))
            for queue in queues:
                statistics.queues[virtual_host, queue.name].add("publish", now)
        self._next.published(message, outcome, virtual_host)

    def refused(self, *facts: Any) -> None:
        """Full queues have refused a message."""
        self._next.refused(*facts)

    def delivered(
        self,
        message: Any,
        queue: str,
        consumer: str | None,
        connection: Any,
        channel: int,
        tag: int,
        redelivered: bool,
    ) -> None:
        """A message goes to a client."""
        name = connection.name
        where = {
            "virtual_host": connection.virtual_host_name,
            "queue": queue,
            "connection": name,
            "channel": channel,
        }
        if consumer is None:
            event = "get_no_ack" if self._gets.get((name, channel)) else "get"
        else:
            event = "deliver_no_ack" if self._no_ack.get((name, channel, consumer)) else "deliver"
        count = self._statistics.of_message
        count(event, **where)
        count("deliver_get", **where)
        if redelivered:
            count("redeliver", **where)
        self._next.delivered(message, queue, consumer, connection, channel, tag, redelivered)

    def settled(self, event: str, deliveries: Sequence[Any], connection: Any, channel: int) -> None:
        """Deliveries are about to be settled."""
        if event == "acked":
            for delivery in deliveries:
                self._statistics.of_message(
                    "ack",
                    virtual_host=connection.virtual_host_name,
                    queue=delivery.queue.name,
                    connection=connection.name,
                    channel=channel,
                )
        self._next.settled(event, deliveries, connection, channel)

    def expired(self, *facts: Any) -> None:
        """A message has expired."""
        self._next.expired(*facts)

    def dead_lettered(self, *facts: Any) -> None:
        """A message was dead-lettered and is in other queues now."""
        self._next.dead_lettered(*facts)

    def dropped(
        self, messages: Sequence[Any], queue: str | None, reason: str, detail: str, virtual_host: str
    ) -> None:
        """Messages were dropped."""
        if reason == "unroutable":
            self._statistics.of_message("drop_unroutable", len(messages), virtual_host=virtual_host)
        self._next.dropped(messages, queue, reason, detail, virtual_host)

    def model(self, event: str, **facts: Any) -> None:
        """Any other event of the model."""
        statistics = self._statistics
        for name in _CHURN.get(event, ()):
            statistics.churn.add(name, statistics.now())
        if event == "consumer added":
            key = facts["connection"], facts["channel"], facts["consumer"]
            self._no_ack[key] = bool(facts.get("no_ack"))
        elif event == "returned":
            statistics.of_message("return_unroutable", virtual_host=facts["virtual_host"])
        elif event == "queue deleted":
            statistics.queues.pop((facts["virtual_host"], facts["queue"]), None)
        elif event == "exchange deleted":
            statistics.exchanges.pop((facts["virtual_host"], facts["exchange"]), None)
        self._next.model(event, **facts)
