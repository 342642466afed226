"""What the runtime sees of a connection, whatever it speaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class PeerAddress:
    """Where a connection comes from and how.

    `certificate_subject` is the common name in the client's certificate, where one was verified.
    """

    host: str = "127.0.0.1"
    port: int = 0
    server_host: str = "127.0.0.1"
    server_port: int = 0
    tls: bool = False
    certificate_subject: str | None = None

    @property
    def name(self) -> str:
        """The connection's name, as RabbitMQ writes it: `[::1]:34106 -> [::1]:5672` over IPv6."""
        client, server = bracketed(self.host), bracketed(self.server_host)
        return f"{client}:{self.port} -> {server}:{self.server_port}"


def bracketed(host: str) -> str:
    """A host as it stands before a port: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


class Connection(Protocol):
    """A connection without its transport."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def finished(self) -> bool:
        """True: write out what is pending, then end the transport so that the peer can still read it."""

    @property
    def reading(self) -> bool:
        """False: read nothing from the transport until it is True again."""

    @property
    def occupied(self) -> bool:
        """True: what `pending` returned last is deliveries, and the peer has enough others to settle.

        So it does not wait for what its input causes.
        """

    @property
    def paced(self) -> bool:
        """True: the peer sends what it has credit for, and waits for more while the rest is processed.

        So the output is written between slices of its input.
        """

    @property
    def aborted(self) -> bool:
        """True: end the transport at once."""

    @property
    def resets(self) -> bool:
        """True: however it ends, the last thing the peer sees is a reset, as if the machine had gone."""

    @property
    def on_reset(self) -> Callable[[], object] | None:
        """None unless the ends of the transport are passed on to another one, each of them by itself.

        Then output goes on after the end of the input, until `finished`, and input goes on after `finished`.
        If the peer resets the transport, this is called before `receive_eof`.
        """

    def receive(self, data: bytes) -> None:
        """Take bytes from the peer. Whatever they are, nothing is raised."""

    def receive_eof(self) -> None:
        """The peer will send no more, or the transport is lost: let go of everything. Twice is once."""

    def pending(self) -> list[bytes | memoryview]:
        """Take the bytes to send, in order.

        If the first piece is a view, the bytes may be many, and share the bodies of messages with other
        connections: they should not all be joined at once.
        """

    def sent(self, count: int) -> None:
        """So many bytes have been written to the transport."""

    def next_deadline(self) -> float | None:
        """When, on the broker's clock, the connection acts by itself next."""
