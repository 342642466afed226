"""The protocols that a broker speaks: one row each, whose modules are loaded on first use.

To take a protocol out, delete its package and its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fakeamqp.dialects import register
from fakeamqp.errors import FakeAMQPError, near_match

if TYPE_CHECKING:
    from fakeamqp.connection import Connection, PeerAddress
    from fakeamqp.dialects import Dialect
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.state import BrokerState

_NEEDED = (
    "connection",
    "session",
    "execution",
    "channel.open",
    "channel.close",
    "channel.close-ok",
)
"""The classes and methods without which there is no conversation."""


class BadAbsence(FakeAMQPError):
    """`not_implemented` names something that no protocol has, or that no broker can be without."""

    __module__ = "fakeamqp.errors"


class Row:
    """One protocol.

    All but the name and the headers are entry points, `module:attribute`, relative to the protocol's package.

    Args:
        name: as users write it, such as "0-9-1".
        headers: the protocol headers that select it; the first is the one that a client should send.
        package: the name of its package in `fakeamqp.protocols`.
        capabilities: see `fakeamqp.dialects.ProtocolRow`.
        connection: makes a server-side connection of a broker, a peer address, a callback and a header.
        dialect: its `Dialect`.
        method_names: a tuple with the names of its methods.
        check_message: raises WireError for a message that this protocol cannot carry.
        sections: makes the properties and the body of a message, of a personality, sections and a body.
        proxied: makes the client's leg of a proxied connection, of the one that has read the header.
        public: makes what `Broker` shows of this protocol alone, of an engine and a broker.
    """

    def __init__(
        self,
        name: str,
        headers: tuple[bytes, ...],
        package: str,
        capabilities: tuple[str, ...],
        *,
        connection: str,
        dialect: str = "dialect:DIALECT",
        method_names: str = "method_names:METHOD_NAMES",
        check_message: str = "",
        sections: str = "",
        proxied: str = "",
        public: str = "",
    ) -> None:
        self.name = name
        self.headers = headers
        self.capabilities: frozenset[str] = frozenset(capabilities)
        self._package = f"{__package__}.{package}"
        self._entry_points = {
            "connection": connection,
            "dialect": dialect,
            "method_names": method_names,
            "check_message": check_message,
            "sections": sections,
            "proxied": proxied,
            "public": public,
        }

    def __repr__(self) -> str:
        return f"<Row {self.name}>"

    def _load(self, what: str) -> Any:
        module, _, attribute = self._entry_points[what].partition(":")
        return getattr(import_module(f".{module}", self._package), attribute)

    @cached_property
    def connection(
        self,
    ) -> Callable[[BrokerState, PeerAddress, Callable[[Connection], None], bytes], Connection]:
        """Makes a server-side connection; the last argument is the header that the client sent."""
        connection: Callable[..., Connection] = self._load("connection")
        return connection

    @cached_property
    def dialect(self) -> Dialect:
        """What the protocol says about its bytes."""
        dialect: Dialect = self._load("dialect")
        return dialect

    @cached_property
    def method_names(self) -> tuple[str, ...]:
        """The names of all methods but heartbeats, known without loading the codec."""
        names: tuple[str, ...] = self._load("method_names")
        return names

    @cached_property
    def check_message(self) -> Callable[[Message], None]:
        """Raises WireError for a message that the protocol cannot carry."""
        check: Callable[[Message], None] = self._load("check_message")
        return check

    @cached_property
    def sections(self) -> Callable[..., Any]:
        """Makes the properties and the body of a message of sections."""
        sections: Callable[..., Any] = self._load("sections")
        return sections

    @cached_property
    def proxied(self) -> Callable[[Any], Any] | None:
        """Makes the client's leg of a proxied connection; None for a protocol that a proxy does not know."""
        made: Callable[[Any], Any] | None = self._load("proxied") if self._entry_points["proxied"] else None
        return made

    @cached_property
    def public(self) -> Callable[..., Any]:
        """Makes what `Broker` shows of this protocol alone."""
        public: Callable[..., Any] = self._load("public")
        return public


PROTOCOLS = (
    Row(
        "0-9-1",
        (b"AMQP\x00\x00\x09\x01",),
        "amqp_0_9_1",
        ("channels", "confirms"),
        connection="server_connection:Amqp091Connection",
        method_names="dialect:METHOD_NAMES",
        check_message="delivering:check_message",
    ),
    Row(
        "0-10",
        (b"AMQP\x01\x01\x00\x0a",),
        "amqp_0_10",
        ("sessions",),
        connection="server_connection:Amqp010Connection",
    ),
    Row(
        "1-0",
        (b"AMQP\x03\x01\x00\x00",),
        "amqp_1_0",
        ("links",),
        connection="server_connection:Amqp10Connection",
        sections="sections:message_of",
        proxied="proxied.connection:ProxiedAmqp10Connection",
    ),
    Row(
        "0-9",
        (b"AMQP\x01\x01\x00\x09",),
        "amqp_0_9",
        ("channels", "requests", "confirms"),
        connection="rabbitmq:connection",
        public="public:Amqp09",
    ),
    Row(
        "0-8",
        (b"AMQP\x01\x01\x08\x00", b"AMQP\x01\x01\x09\x01"),
        "amqp_0_9",
        ("channels",),
        connection="server_connection:Amqp08Connection",
        dialect="dialect:DIALECT_0_8",
        method_names="method_names:METHOD_NAMES_0_8",
    ),
)
"""The most common first: its header answers clients that ask for none of them."""

_by_name = {row.name: row for row in PROTOCOLS}
_by_header = {header: row for row in PROTOCOLS for header in row.headers}

for _row in PROTOCOLS:
    register(_row)


def named(name: str) -> Row:
    """The row of a protocol.

    Raises:
        KeyError: there is no such protocol.
    """
    return _by_name[name]


def by_header(header: bytes) -> Row | None:
    """The row that a protocol header selects; None if there is none."""
    return _by_header.get(header)


def proxied_by_header(header: bytes) -> Callable[[Any], Any] | None:
    """Makes the client's leg of a proxied connection with this header; None where it is not known."""
    row = by_header(header)
    return None if row is None else row.proxied


def preload() -> None:
    """Load what clients of the first protocol need, so that none waits for imports until it times out."""
    import_module("fakeamqp.protocols.negotiation")
    for row in PROTOCOLS[:1]:
        _ = row.connection


def check_absent(absent: object) -> None:
    """Check the names of the classes and methods that a broker is to be made without.

    Raises:
        BadAbsence: they are not a tuple of str; no method has a name or is of the class; or one is needed.
    """
    from fakeamqp.protocols.base.absent import is_absent

    if not isinstance(absent, tuple) or not all(isinstance(name, str) for name in absent):
        raise BadAbsence(
            f"not_implemented must be a tuple of class and method names, such as ('dtx',), not {absent!r}"
        )
    known = {
        name: None
        for row in PROTOCOLS
        for method in row.method_names
        for name in (method.partition(".")[0], method)
    }
    for name in absent:
        if name not in known:
            raise BadAbsence(
                f"not_implemented: no protocol has a class or method {name!r}{near_match(name, known)}"
            )
        if name == "channel" or is_absent(name, _NEEDED):
            raise BadAbsence(f"not_implemented: no broker can be without {name!r}")
