"""What faults need of a connection and of a broker. Both are handed in: faults know the wire and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "Cancellable",
    "CountingFaultPort",
    "Direction",
    "FaultPort",
    "Host",
    "Linked",
    "Nobody",
    "Onlooker",
]

Direction: TypeAlias = Literal["received", "sent"]
"""Whether the broker received it, or sends it."""


class FaultPort(Protocol):
    """One connection, in terms of its protocol. See `FaultPort` in `protocols`, in the package of each."""

    @property
    def name(self) -> str:
        """The connection's name."""

    @property
    def protocol(self) -> str:
        """What it speaks, as `fakeamqp.adapters` names it: "0-9-1", for one."""

    @property
    def client_name(self) -> str | None:
        """The name the client gave itself."""

    @property
    def virtual_host(self) -> str | None:
        """The name of the virtual host the client works in; None before it has opened one."""

    @property
    def open(self) -> bool:
        """Whether anything can still be said on it."""

    @property
    def channels(self) -> tuple[int, ...]:
        """The numbers of its open channels."""

    @property
    def largest_frame(self) -> int:
        """Bytes that a frame to the client may have; 0 is no limit."""

    def channel_open(self, number: int) -> bool:
        """Whether a channel is open."""

    def take(self, frames: bytes) -> None:
        """Go on with frames that were kept when they came."""

    def take_copy(self, number: int, frames: bytes) -> None:
        """Go on with one more copy of a publish, which is not confirmed."""

    def confirm_now(self) -> None:
        """Send the confirms that are due."""

    def pause(self, paused: bool) -> None:
        """Read no further from the client, or go on."""

    def put(self, octets: bytes) -> None:
        """Send bytes as they are."""

    def close_channel(self, number: int, code: int, text: str, method: int) -> None:
        """Close a channel as an error in this method would."""

    def close_connection(self, code: int, text: str, method: int) -> None:
        """Close the connection as an error in this method would."""

    def end(self, *, reset: bool) -> None:
        """End the transport without a word."""

    def refuse_login(self, text: str, client_properties: Any) -> None:
        """Refuse the client as one whose password is wrong."""

    def unhear(self) -> None:
        """What has come last was no sign of life."""

    def hold_to_heartbeats(self) -> None:
        """From now on silence counts, whatever clock the client lives by."""

    def destinations(self, number: int, method: Any, properties: Any) -> tuple[str, ...]:
        """The queues that a publish goes to."""

    def exchange_type(self, name: str) -> str | None:
        """The type of an exchange."""

    def consumed_queue(self, number: int, consumer_tag: str) -> str | None:
        """The queue a consumer takes from."""

    def set_flow(self, number: int, active: bool) -> None:
        """Send channel.flow."""

    def starve(self, who: object, queue: str | None, destination: str | None, starved: bool) -> int:
        """Let credit that the client gives in so many words count for nothing, or for what it is."""


class CountingFaultPort(FaultPort, Protocol):
    """One connection of 0-9-1 or 0-9: there deliveries are counted, and in 0-9-1 publishes as well."""

    def take_unsecured(self, number: int, frames: bytes) -> None:
        """Go on with a publish that a crash will take away before it is confirmed."""

    def next_publish(self, number: int) -> int | None:
        """The tag that confirms the next publish; None where publishes are not confirmed."""

    def skip_publish(self, number: int, accepted: bool | None) -> None:
        """Count a publish that never comes."""

    def confirm_singly(self, number: int) -> None:
        """Have no confirm cover other publishes from now on."""

    def held_messages(self, number: int, tag: int, multiple: bool) -> tuple[tuple[str, Any], ...]:
        """Queue and message of each delivery that a delivery tag stands for."""

    def spare_tag(self, number: int) -> int:
        """A delivery tag for one more copy of a delivery."""


class Linked(Protocol):
    """A connection as it passes the tap."""

    name: str
    protocol: str

    @property
    def line(self) -> Any:
        """Its `FaultPort`."""


class Onlooker(Protocol):
    """Who stands behind the faults on the tap: it sees what really goes over the wire."""

    confirms_singly: bool

    def received(self, connection: Any, frame_type: int, channel: int, payload: bytes) -> bool | None:
        """One whole frame has come."""

    def sending(self, connection: Any, octets: bytes) -> bytes:
        """Whole frames are about to be sent."""

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        """Something happened to a connection."""

    def published(self, *facts: Any) -> None:
        """A message was published and routed."""

    def refused(self, *facts: Any) -> None:
        """Full queues have not taken it."""

    def delivered(self, *facts: Any) -> None:
        """A message goes to a client."""

    def settled(self, *facts: Any) -> None:
        """Deliveries end."""

    def expired(self, *facts: Any) -> None:
        """The time to live of a message is over."""

    def dead_lettered(self, *facts: Any) -> None:
        """A message died in a queue and is in others now."""

    def dropped(self, *facts: Any) -> None:
        """Messages are gone."""

    def model(self, event: str, **facts: object) -> None:
        """Anything else happened in the model."""


class Nobody:
    """Nobody looks on."""

    confirms_singly = False

    def received(self, connection: Any, frame_type: int, channel: int, payload: bytes) -> None:
        """See `Onlooker`, here and below."""

    def sending(self, connection: Any, octets: bytes) -> bytes:
        """They are sent as they are."""
        return octets

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        """Nobody is told."""

    def published(self, *facts: Any) -> None:
        """Nobody is told."""

    refused = delivered = settled = expired = dead_lettered = dropped = published

    def model(self, event: str, **facts: object) -> None:
        """Nobody is told."""


class Cancellable(Protocol):
    """A timer."""

    def cancel(self) -> None:
        """Make sure it does not run."""


class Host(Protocol):
    """The broker that faults happen in."""

    @property
    def seed(self) -> int | str | None:
        """The seed that the broker was made with."""

    @property
    def exchange_types(self) -> frozenset[str]:
        """The exchange types there are."""

    def __enter__(self) -> Self:
        """Have the broker stand still."""

    def __exit__(self, *error: Any) -> None:
        """Have it go on, and send what came of it."""

    def now(self) -> float:
        """The instant on the broker's clock, in seconds."""

    def call_at(self, due: float, callback: Callable[[], object], label: str) -> Cancellable:
        """Have something done at an instant of the broker's clock."""

    def wait_until(self, predicate: Callable[[], object], timeout: float) -> bool:
        """Wait until a predicate holds, at most `timeout` real seconds; whether it did."""

    def remark(self) -> str:
        """What to add where somebody waited in vain because time stands still; otherwise ""."""

    def linked(self) -> Iterable[Linked]:
        """The open connections, oldest first."""

    def alias(self, name: str) -> str | None:
        """The short name that the trace gives a connection, or None."""

    def onlooker(self) -> Onlooker | None:
        """Who watches the tap when there are no faults."""

    def install(self, tap: Any) -> None:
        """Have everything pass `tap`, or (None) nothing but the onlooker."""

    def note(self, connection: str, event: str, detail: str) -> None:
        """Have the trace show what has happened to a connection."""

    def wrap_connections(self, wrap: Callable[[Any, Callable[[], object]], Any] | None) -> None:
        """Put something around every connection, now and later; None takes it off where it is idle."""

    def refuse(self, refusing: bool) -> None:
        """Have the operating system refuse dials, or not any more."""

    def restart(self, *, crash: bool, durable: bool) -> None:
        """Restart the broker on the same port."""

    def block(self, reason: str | None) -> None:
        """Hold back all publishers; None lets them go on."""

    def redirect(
        self, host: str | None, known_hosts: tuple[str, ...] = (), note: Callable[[], object] = ...
    ) -> None:
        """Send clients that open a connection elsewhere, or (None) no more; `note` is called for each."""

    def cancel_consumers(self, queue: str, virtual_host: str) -> int:
        """End the consumers of a queue from the server's side; how many there were."""
