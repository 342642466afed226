"""The tap that counts for the API, in front of the trace's recorder. See `fakeamqp.model.tap.Tap`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.faults.port import NullTap
from fakeamqp.model.events import EVENTS

if TYPE_CHECKING:
    from fakeamqp.faults.port import NextTap
    from fakeamqp.management.counters import Statistics

_METHOD = 1
_FRAME_OVERHEAD = 8
_PUBLISH = b"\x00\x3c\x00\x28"
_GET = b"\x00\x3c\x00\x46"
_GET_EMPTY = b"\x00\x3c\x00\x48"
_CONFIRM_SELECT = b"\x00\x55\x00\x0a"
_CHANNEL_OPEN = b"\x00\x14\x00\x0a"
_CHANNEL_CLOSE = b"\x00\x14\x00\x28"
_CLOSING_EVENTS = frozenset(("closed", "aborted", "lost"))


class CountingTap:
    """Counts what passes, and passes it on.

    Args:
        statistics: the counts.
        time: the broker's wall time.
        following: the recorder of the trace; None without one.
    """

    intercepts = False

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
        self._counts: dict[str, Callable[[dict[str, Any]], None]] = {
            "published": self._published,
            "delivered": self._delivered,
            "acked": self._acked,
            "dropped": self._dropped,
            "returned": self._returned,
            "consumer added": self._consumer_added,
            "queue declared": self._queue_declared,
            "queue deleted": self._queue_deleted,
            "exchange deleted": self._exchange_deleted,
        }

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

    def event(self, event: str, connection: Any, message: Any, *values: object) -> None:
        """An event of the model."""
        count = self._counts.get(event)
        if count is not None:
            name = None if connection is None else connection.name
            facts = EVENTS[event].facts(name, message, values)
            count(facts if connection is None else {**facts, "virtual_host": connection.virtual_host_name})
        self._next.event(event, connection, message, *values)

    def _published(self, facts: dict[str, Any]) -> None:
        statistics = self._statistics
        now = statistics.now()
        virtual_host, message = facts["virtual_host"], facts["message"]
        statistics.of_message("publish", virtual_host=virtual_host)
        exchange = statistics.exchanges[virtual_host, message.exchange]
        exchange.add("publish_in", now)
        queues = facts["outcome"].queues
        if queues:
            exchange.add("publish_out", now, len(queues))
            for queue in queues:
                statistics.queues[virtual_host, queue.name].add("publish", now)

    def _delivered(self, facts: dict[str, Any]) -> None:
        where = {name: facts[name] for name in ("virtual_host", "queue", "connection", "channel")}
        name, channel, consumer = facts["connection"], facts["channel"], facts["consumer"]
        if consumer is None:
            event = "get_no_ack" if self._gets.get((name, channel)) else "get"
        else:
            event = "deliver_no_ack" if self._no_ack.get((name, channel, consumer)) else "deliver"
        count = self._statistics.of_message
        count(event, **where)
        count("deliver_get", **where)
        if facts["redelivered"]:
            count("redeliver", **where)

    def _acked(self, facts: dict[str, Any]) -> None:
        where = {name: facts[name] for name in ("virtual_host", "queue", "connection", "channel")}
        self._statistics.of_message("ack", **where)

    def _dropped(self, facts: dict[str, Any]) -> None:
        if facts["reason"] == "unroutable":
            count = len(facts["message"])
            self._statistics.of_message("drop_unroutable", count, virtual_host=facts["virtual_host"])

    def _returned(self, facts: dict[str, Any]) -> None:
        self._statistics.of_message("return_unroutable", virtual_host=facts["virtual_host"])

    def _consumer_added(self, facts: dict[str, Any]) -> None:
        self._no_ack[facts["connection"], facts["channel"], facts["consumer"]] = bool(facts.get("no_ack"))

    def _queue_declared(self, _facts: dict[str, Any]) -> None:
        now = self._statistics.now()
        self._statistics.churn.add("queue_declared", now)
        self._statistics.churn.add("queue_created", now)

    def _queue_deleted(self, facts: dict[str, Any]) -> None:
        self._statistics.churn.add("queue_deleted", self._statistics.now())
        self._statistics.queues.pop((facts["virtual_host"], facts["queue"]), None)

    def _exchange_deleted(self, facts: dict[str, Any]) -> None:
        self._statistics.exchanges.pop((facts["virtual_host"], facts["exchange"]), None)
