"""What faults may learn of a connection of 0-9-1 and do to it: as in `framed.fault_port`, and its confirms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.framed import fault_port
from fakeamqp.protocols.framed.states import ChannelState

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel
    from fakeamqp.protocols.amqp_0_9_1.server_connection import Amqp091Connection

__all__ = ["Amqp091FaultPort"]


class Amqp091FaultPort(fault_port.FramedFaultPort):
    """One 0-9-1 connection as fault rules see it."""

    __slots__ = ()

    protocol = "0-9-1"

    _connection: Amqp091Connection

    def take_unsecured(self, number: int, frames: bytes) -> None:
        """Go on with a publish that a crash will take away before it is confirmed."""
        channel = self._channel(number)
        if channel is not None:
            channel.secures = False
        try:
            self.take(frames)
        finally:
            if channel is not None:
                channel.secures = True

    def take_copy(self, number: int, frames: bytes) -> None:
        """Go on with one more copy of a publish: it has no place of its own in the count of confirms."""
        channel = self._channel(number)
        if channel is not None and channel.mode == "confirm":
            channel.mode = None
            try:
                self.take(frames)
            finally:
                channel.mode = "confirm"
        else:
            self.take(frames)

    def confirm_now(self) -> None:
        """Send the confirms that are due: for those who take frames while no input is being dealt with."""
        for channel in list(self._connection.channels.values()):
            channel.confirm_now()

    def next_publish(self, number: int) -> int | None:
        """The tag that confirms the next publish on a channel; None where publishes are not confirmed."""
        channel = self._channel(number)
        return None if channel is None or channel.mode != "confirm" else channel.published + 1

    def skip_publish(self, number: int, accepted: bool | None) -> None:
        """Count a publish that never comes, and confirm it, refuse it, or (None) leave it open for ever."""
        channel = self._channel(number)
        if channel is not None and channel.mode == "confirm":
            channel.skip_publish(accepted)

    def confirm_singly(self, number: int) -> None:
        """Have no confirm on a channel cover other publishes from now on."""
        channel = self._channel(number)
        if channel is not None:
            channel.confirms_singly = True

    def _channel(self, number: int) -> Amqp091Channel | None:
        channel = self._connection.channels.get(number)
        return channel if channel is not None and channel.state is ChannelState.OPEN else None
