"""The fault port of a connection through a proxy; see `fakeamqp.faults.port.FaultPort`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.base.proxied.port import ProxiedPort

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.proxied.channel import ProxiedChannel
    from fakeamqp.protocols.amqp_0_9_1.proxied.connection import ProxiedConnection

_PREDECLARED = {
    "": "direct",
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.headers": "headers",
    "amq.match": "headers",
    "amq.topic": "topic",
    "amq.rabbitmq.trace": "topic",
}
_ACCESS_REFUSED = 403


class ProxiedFaultPort(ProxiedPort):
    """The fault port of one connection through a proxy."""

    __slots__ = ()

    protocol: str = "0-9-1"

    _connection: ProxiedConnection

    # --- the connection ---------------------------------------------------------------------------------

    @property
    def channels(self) -> tuple[int, ...]:
        channels = self._connection.channels
        return tuple(sorted(number for number, channel in channels.items() if channel.open))

    def channel_open(self, number: int) -> bool:
        """Channel 0 is open as long as the connection."""
        return self.open if number == 0 else self._channel(number) is not None

    # --- numbers ----------------------------------------------------------------------------------------

    def next_publish(self, number: int) -> int | None:
        channel = self._channel(number)
        return None if channel is None or channel.mode != "confirm" else channel.published + 1

    def confirm_singly(self, number: int) -> None:
        channel = self._channel(number)
        if channel is not None:
            channel.confirms_singly = True

    def spare_tag(self, number: int) -> int:
        channel = self._channel(number)
        return 0 if channel is None else channel.spare_tag()

    def renumber(self, number: int, tags: Mapping[int, int]) -> None:
        channel = self._channel(number)
        if channel is not None:
            channel.renumber(tags)

    def drop(self, number: int, what: Any) -> None:
        self._answer(number, None)

    def nack(self, number: int, what: Any) -> None:
        self._answer(number, False)

    def returned(self, number: int, what: Any) -> None:
        self._answer(number, True)

    def _answer(self, number: int, accepted: bool | None) -> None:
        """Count a publish that the broker does not get; None leaves it without a confirm."""
        channel = self._channel(number)
        tag = None if channel is None else channel.skip_publish()
        if tag is not None and accepted is not None:
            self._connection.confirm(number, tag, accepted=accepted)

    # --- closing ----------------------------------------------------------------------------------------

    def close_channel(self, number: int, code: int, text: str, method: int) -> None:
        self._connection.close_channel(number, code, text, method)

    def close_connection(self, code: int, text: str, method: int) -> None:
        self._connection.close(code, text, method)

    def refuse_login(self, text: str, client_properties: Any) -> None:
        """A client that announces authentication_failure_close is told; for others the transport ends."""
        capabilities = (client_properties or {}).get("capabilities")
        if isinstance(capabilities, Mapping) and capabilities.get("authentication_failure_close") is True:
            self._connection.close(_ACCESS_REFUSED, f"ACCESS_REFUSED - {text}")
        else:
            self._connection.disconnect(reset=False)

    # --- what conditions ask ----------------------------------------------------------------------------

    def destinations(self, number: int, method: Any, properties: Any) -> tuple[str, ...]:
        """The proxy knows the queue of a publish to the default exchange only."""
        return (method.routing_key,) if not method.exchange else ()

    def exchange_type(self, name: str) -> str | None:
        return _PREDECLARED.get(name) or self._connection.exchange_types.get(name)

    def consumed_queue(self, number: int, consumer_tag: str) -> str | None:
        channel = self._connection.channels.get(number)
        consumer = None if channel is None else channel.consumers.get(consumer_tag)
        return None if consumer is None else consumer.queue

    def held_messages(self, number: int, settlement: Any) -> tuple[tuple[str, Any], ...]:
        channel = self._connection.channels.get(number)
        if channel is None:
            return ()
        held = channel.holds(settlement.delivery_tag, getattr(settlement, "multiple", False))
        return tuple((each.queue, each.message) for each in held)

    # --- flow -------------------------------------------------------------------------------------------

    def set_flow(self, number: int, active: bool) -> None:
        channel = self._channel(number)
        if channel is not None:
            channel.awaited_flow_oks += 1
            self._connection.send(number, m.ChannelFlow(active=active))

    def _channel(self, number: int) -> ProxiedChannel | None:
        channel = self._connection.channels.get(number)
        return channel if channel is not None and channel.open else None
