"""What faults need of a broker, of its tap, and of a connection.

The broker hands in its context: see `fakeamqp.fault_context`. Each protocol implements the fault port in its
module `port`: faults know the dialect and this port; they do not know the connection behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typing_extensions import Self


class FaultPort(Protocol):
    """The fault port of one connection.

    The methods keep the protocol's order intact: delivery tags, publish counts and command ids stay as the
    client counts them, whatever a fault does to a frame group. A channel of 0-10 is open while a session is
    attached to it. A method that only some protocols need has a default.
    """

    __slots__ = ()

    # --- the connection ---------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The connection's name: both addresses."""

    @property
    def protocol(self) -> str:
        """What the connection speaks, such as "0-9-1"."""

    @property
    def client_name(self) -> str | None:
        """The name the client gave itself (client property `connection_name`), or None."""

    @property
    def virtual_host(self) -> str | None:
        """The name of the open virtual host; None before the client has opened one."""

    @property
    def open(self) -> bool:
        """True while the connection can still send."""

    @property
    def channels(self) -> tuple[int, ...]:
        """The numbers of the open channels, ascending. In 0-10: of channels with an attached session."""

    @property
    def largest_frame(self) -> int:
        """The negotiated size limit of a frame to the client, in bytes with its overhead; 0 is no limit."""

    def channel_open(self, number: int) -> bool:
        """True while the channel is open; channel 0 of 0-9-x is open as long as its connection."""

    # --- frames -----------------------------------------------------------------------------------------

    def receive(self, frames: bytes) -> None:
        """Process whole frames from the client that a fault has kept."""

    def receive_duplicate(self, number: int, frames: bytes) -> None:
        """Process a duplicate of a received frame group. The duplicate is neither counted nor confirmed."""

    def flush_confirms(self) -> None:
        """Send the confirms, responses or completions that are due."""

    def pause(self, paused: bool) -> None:
        """Stop reading from the client, or continue."""

    def send(self, octets: bytes) -> None:
        """Send bytes unchanged."""

    def receive_unsecured(self, number: int, frames: bytes) -> None:
        """Process a publish that is lost if the broker crashes before it is confirmed."""

    # --- numbers ----------------------------------------------------------------------------------------

    def session_name(self, number: int) -> str | None:
        """The name of the session on a channel of 0-10, as text."""
        return None

    def next_publish(self, number: int) -> int | None:
        """The delivery tag that will confirm the channel's next publish; None without confirms."""
        return None

    def confirm_singly(self, number: int) -> None:
        """Send one confirm per publish on this channel from now on."""
        raise AssertionError(f"{self.protocol} has no confirms")

    def spare_tag(self, number: int) -> int:
        """In 0-9-x: a new delivery tag for a duplicate of a delivery; settling it has no effect."""
        raise AssertionError(f"deliveries of {self.protocol} have no tags")

    def renumber(self, number: int, tags: Mapping[int, int]) -> None:
        """In 0-9-x: give unsettled deliveries other tags, by their present tags."""
        raise AssertionError(f"deliveries of {self.protocol} have no tags")

    def spare_number(self, number: int) -> Any:
        """The number for one more request (0-9: `Request`) or command (0-10: its id) to the client.

        The client's response to it, or its completion, has no effect.
        """
        raise AssertionError(f"methods of {self.protocol} have no numbers")

    def withhold_command(self, number: int) -> int | None:
        """In 0-10: withhold the command that is being sent. Returns its id, or None without a session.

        The client does not count it, so the next one that it gets is announced by session.command-point.
        """
        return None

    def with_command_point(self, number: int, command_id: int, frames: bytes) -> bytes:
        """In 0-10: the frames of a command, behind a command point if the client expects another id."""
        return frames

    def withhold_delivery(self, number: int, delivery_id: int, transfers: int) -> int | None:
        """In 1.0: withhold the delivery with this id. Returns the key for `resume_delivery`, or None."""
        return None

    def resume_delivery(self, number: int, key: int, transfers: int) -> int:
        """In 1.0: the delivery id of a withheld delivery that the client gets now."""
        return key

    def spare_delivery(self, number: int, transfers: int) -> int:
        """In 1.0: the delivery id of a duplicate of a delivery; settling it has no effect."""
        raise AssertionError(f"deliveries of {self.protocol} have no ids")

    def message_begun(self, number: int, handle: int | None) -> bool:
        """In 1.0: True between the transfers of a message: from the client on this link, for None to it."""
        return False

    def count_gathered(self, number: int, transfers: int) -> bool:
        """In 1.0: count a transfer that waits for the rest of its message, so that the client goes on.

        `transfers` are those that wait now. False: no more can wait, so they must be received.
        """
        return True

    # --- received methods that the channel does not receive ---------------------------------------------
    # `what` is what counts: None for a publish in 0-9-x, a `Request` or a `Response` in 0-9, the frames of a
    # command in 0-10. Without confirms a publish is not counted.

    def drop(self, number: int, what: Any) -> None:
        """Count it. It is neither executed nor confirmed, answered or completed."""

    def nack(self, number: int, what: Any) -> None:
        """Count a refused publish, and tell its publisher: basic.nack or message.reject.

        0-10 sends an exception, which ends the session, unless the personality answers publishers and the
        accept-mode asks for it.
        """

    def returned(self, number: int, what: Any) -> None:
        """Count a returned publish, and confirm or answer it."""
        raise AssertionError(f"faults return no publishes of {self.protocol}")

    def exception(self, number: int, frames: bytes, code: int, text: str, field_index: int | None) -> None:
        """In 0-10: count a command, and answer it with execution.exception, which ends the session."""
        raise AssertionError(f"there are no exceptions in {self.protocol}")

    # --- closing ----------------------------------------------------------------------------------------

    def close_channel(self, number: int, code: int, text: str, method: int) -> None:
        """Close a channel as an error in `method` does; `method` is a class-and-method index, 0 for none."""

    def close_connection(self, code: int, text: str, method: int) -> None:
        """Close the connection as an error in `method` does; see `close_channel`."""

    def close_with(self, condition: str, text: str, number: int | None) -> None:
        """In 1.0: end the session on a channel, or for None close the connection, with this condition."""
        raise AssertionError(f"errors of {self.protocol} have codes")

    def detach(self, number: int, body: Any, condition: str, text: str) -> None:
        """In 1.0: detach the link that a performative concerns; one of attach is refused."""
        raise AssertionError(f"{self.protocol} has no links")

    def disconnect(self, *, reset: bool) -> None:
        """End the transport after pending output, without a close method: with FIN, or with a reset."""

    def refuse_login(self, text: str, client_properties: Any) -> None:
        """Refuse the login as for a wrong password. `client_properties` tell what the client supports."""

    # --- heartbeats -------------------------------------------------------------------------------------

    def drop_heartbeat(self) -> None:
        """Do not count the last received heartbeat as a sign of life."""

    def enforce_heartbeats(self) -> None:
        """Apply the heartbeat timeout from now on, also on a virtual clock."""

    # --- what conditions ask ----------------------------------------------------------------------------

    def destinations(self, number: int, method: Any, properties: Any) -> tuple[str, ...]:
        """The names of the queues that a publish is routed to. Asking changes nothing."""

    def link_target(self, number: int, handle: int) -> tuple[str, str] | None:
        """In 1.0: exchange and routing key of a link from the client; None if each message has its own."""
        return None

    def exchange_type(self, name: str) -> str | None:
        """The type of an exchange, or None where there is no such exchange."""

    def consumed_queue(self, number: int, consumer_tag: str) -> str | None:
        """The name of a consumer's queue, or None where there is no such consumer."""

    def held_messages(self, number: int, settlement: Any) -> tuple[tuple[str, Any], ...]:
        """Queue name and message of each delivery that the client holds and settles with this method.

        In 0-9 it may be a `Response`, which settles the transfers that were sent as these requests.
        """

    # --- flow -------------------------------------------------------------------------------------------

    def set_flow(self, number: int, active: bool) -> None:
        """Tell the client to stop publishing on a channel, or to continue."""

    def starve(self, owner: object, queue: str | None, destination: str | None, starved: bool) -> int:
        """Ignore the credit of 0-10 subscriptions, or (`starved=False`) restore it.

        Args:
            owner: the fault that asks. Credit is ignored until every owner has restored it.
            queue: only subscriptions to this queue.
            destination: only the subscription with this destination.
            starved: True ignores the credit.

        Returns:
            The number of subscriptions concerned; 0 in protocols without explicit credit.
        """
        return 0


class TappedConnection(Protocol):
    """A connection as it passes the tap."""

    name: str
    protocol: str

    @property
    def fault_port(self) -> Any:
        """Its `FaultPort`; the same object each time."""


class Cancellable(Protocol):
    """A timer."""

    def cancel(self) -> None:
        """Stop the timer, unless it has already run."""


class BrokerContext(Protocol):
    """What faults need of the broker. As a context manager it holds the engine's lock."""

    def __enter__(self) -> Self:
        """Take the engine's lock."""

    def __exit__(self, *error: Any) -> None:
        """Send what the block has caused, and release the engine's lock."""

    impossible: Mapping[str, str] = {}
    """Why some faults cannot happen here, by name: those of the broker itself, in front of another one."""

    def wait_until(self, predicate: Callable[[], object], timeout: float) -> bool:
        """Wait at most `timeout` real seconds until the predicate holds; returns whether it did."""

    async def wait_until_async(self, predicate: Callable[[], object], timeout: float) -> bool:
        """`wait_until` for coroutines: the event loop keeps running."""

    def span(self, timeout: float) -> str:
        """How long a wait was, for a timeout error."""

    def report(self) -> str:
        """Text to append to a timeout error: hints, what the broker holds, and the latest events."""

    @property
    def seed(self) -> int | str | None:
        """The seed that the broker was made with; without one, that of the simulation; or None."""

    def now(self) -> float:
        """The current instant of the broker's clock, in seconds."""

    def call_at(self, due: float, callback: Callable[[], object], label: str) -> Cancellable:
        """Call `callback` at an instant of the broker's clock."""

    def connections(self) -> Iterable[TappedConnection]:
        """The open connections, oldest first."""

    def alias(self, name: str) -> str | None:
        """The short name that the trace gives a connection, such as "c1", or None."""

    def wrap_connections(self, wrap: Callable[[Any, Callable[[], object]], Any] | None) -> None:
        """Put a wrapper around every connection, open or to come; None removes it from idle connections."""

    def refuse(self, refusing: bool) -> None:
        """Close the listening port, so that the operating system refuses connections; or open it again."""

    def note(self, connection: str, event: str, detail: str) -> None:
        """Add an event of a connection to the trace."""

    @property
    def exchange_types(self) -> frozenset[str]:
        """The names of the exchange types."""

    @property
    def simulation_seed(self) -> int | str | None:
        """The seed of the simulation that the broker runs in; None outside of simulations."""

    def next_tap(self) -> NextTap | None:
        """The tap that is in place without faults (the trace's recorder), or None."""

    def install(self, tap: Any) -> None:
        """Make `tap` the broker's tap; None restores the one that was there before."""

    def restart(self, *, crash: bool, durable: bool) -> None:
        """Restart the broker on the same port."""

    def block(self, source: str, reason: str | None) -> None:
        """Block all publishers; with None, end this source's alarm."""

    def redirect(
        self, host: str | None, known_hosts: tuple[str, ...] = (), note: Callable[[], object] = ...
    ) -> None:
        """Redirect clients that open a connection; None stops it. `note` is called once per client."""

    def cancel_consumers(self, queue: str, virtual_host: str) -> int:
        """Cancel the consumers of a queue from the server's side; returns how many there were."""


class NextTap(Protocol):
    """The tap behind the faults' own, which sees what really goes over the wire: see `model.tap.Tap`."""

    confirms_singly: bool = False
    intercepts: bool = False

    def received(self, connection: Any, frame_type: int, channel: int, payload: bytes) -> bool | None:
        """A whole frame has arrived."""
        return None

    def sending(self, connection: Any, octets: bytes) -> bytes:
        """Whole frames are about to be sent; returns what to send."""
        return octets

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        """A connection event."""
        return

    def event(self, event: str, connection: Any, message: Any, *values: object) -> None:
        """An event of the model."""
        return


class NullTap(NextTap):
    """Ignores everything: the tap of a broker without a recorder."""
