"""The fault port of a 0-9-1 connection. See `fakeamqp.protocols.amqp_0_9_1.faults.fault_port`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.framed import fault_port
from fakeamqp.protocols.framed.states import ChannelState

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.faults.fault_port import ConfirmingFaultPort
    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel
    from fakeamqp.protocols.framed.server_connection import FramedConnection

__all__ = ["Amqp091FaultPort"]


class Amqp091FaultPort(fault_port.FramedFaultPort):
    """The fault port of one 0-9-1 connection."""

    __slots__ = ()

    protocol = "0-9-1"

    _connection: FramedConnection[Any]

    # --- received publishes -----------------------------------------------------------------------------

    def receive_unsecured(self, number: int, frames: bytes) -> None:
        """Switch off securing for this publish."""
        channel = self._channel(number)
        if channel is not None:
            channel.secures = False
        try:
            self.receive(frames)
        finally:
            if channel is not None:
                channel.secures = True

    def receive_duplicate(self, number: int, frames: bytes) -> None:
        """Switch off confirms for this publish."""
        channel = self._channel(number)
        if channel is not None and channel.mode == "confirm":
            channel.mode = None
            try:
                self.receive(frames)
            finally:
                channel.mode = "confirm"
        else:
            self.receive(frames)

    # --- confirms ---------------------------------------------------------------------------------------

    def flush_confirms(self) -> None:
        """Send the confirms that are due on every channel."""
        for channel in list(self._connection.channels.values()):
            channel.confirm_now()

    def next_publish(self, number: int) -> int | None:
        """Publishes are counted in confirm mode only."""
        channel = self._channel(number)
        return None if channel is None or channel.mode != "confirm" else channel.published + 1

    def drop_publish(self, number: int) -> None:
        """Count without an answer."""
        self._count_publish(number, None)

    def nack_publish(self, number: int) -> None:
        """Count with basic.nack."""
        self._count_publish(number, False)

    def return_publish(self, number: int) -> None:
        """Count with basic.ack."""
        self._count_publish(number, True)

    def confirm_singly(self, number: int) -> None:
        """Set the channel's switch."""
        channel = self._channel(number)
        if channel is not None:
            channel.confirms_singly = True

    def _count_publish(self, number: int, accepted: bool | None) -> None:
        channel = self._channel(number)
        if channel is not None and channel.mode == "confirm":
            channel.skip_publish(accepted)

    def _channel(self, number: int) -> Amqp091Channel | None:
        channel = self._connection.channels.get(number)
        return channel if channel is not None and channel.state is ChannelState.OPEN else None


if TYPE_CHECKING:

    def _check(port: Amqp091FaultPort) -> ConfirmingFaultPort:
        return port
