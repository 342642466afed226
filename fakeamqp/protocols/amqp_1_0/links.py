"""What all links do: they count messages, and grant or use credit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from fakeamqp.protocols.amqp_1_0.codec import composites as c, types as t
from fakeamqp.protocols.amqp_1_0.codec.frames import AMQP, HEADER_SIZE, frame
from fakeamqp.protocols.amqp_1_0.replies import EndFault, Reply
from fakeamqp.protocols.amqp_1_0.serial import MASK, beyond

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_1_0.session import Amqp10Session

UNSETTLED: Final = 0
SETTLED: Final = 1
"""Settle modes of a sender."""
SECOND: Final = 1
"""A settle mode of a receiver."""
_TRANSFER: Final = b"\0\x53\x14"
_NULL, _TRUE, _FALSE, _ZERO = b"\x40", b"\x41", b"\x42", b"\x43"
_FIELDS_BEHIND_MORE: Final = 5


class _Link:
    """One link of a session; the client's handle names it."""

    def __init__(self, session: Amqp10Session, body: c.Attach, address: str | None) -> None:
        self.session: Amqp10Session = session
        self.address: str | None = address
        self.handle: int = body.handle
        self.link_name: str = body.name
        self.delivery_count: int = 0

    def send_flow(self, credit: int, **fields: Any) -> None:
        """Send a flow with this credit."""
        count = self.delivery_count
        self.session.send_flow(handle=self.handle, delivery_count=count, link_credit=credit, **fields)


class LinkFromClient(_Link):
    """A link on which the client sends, with so much credit at first."""

    def __init__(self, session: Amqp10Session, body: c.Attach, address: str | None, credit: int) -> None:
        super().__init__(session, body, address)
        self.mode: int | None = body.snd_settle_mode
        self.delivery_count: int = body.initial_delivery_count or 0
        self.credit: int = credit
        self._most = credit

    @property
    def unfinished(self) -> int:
        """Bytes of a message that is not complete."""
        return 0

    def grant(self) -> None:
        """Grant as much credit as at first."""
        self.credit = self._most
        self.send_flow(self.credit)

    def count(self, messages: int = 1) -> None:
        """Count messages of the client."""
        self.credit -= messages
        self.delivery_count = (self.delivery_count + messages) & MASK

    def end(self) -> None:
        """Forget what the link has."""


def too_large(size: int, largest: int) -> EndFault:
    """The error about a message that is larger than the link allows."""
    return EndFault(
        Reply.MESSAGE_SIZE, f"message size ({size} bytes) > maximum message size ({largest} bytes)"
    )


class LinkToClient(_Link):
    """A link on which the client receives."""

    filters: Mapping[Any, Any] = {}
    timed_out: bool = False
    """Whether the client ever settled too late."""

    def __init__(self, session: Amqp10Session, body: c.Attach, address: str | None) -> None:
        super().__init__(session, body, address)
        self.delivery_count: int = session.choices.first_delivery_count
        self.settled: bool = body.snd_settle_mode == SETTLED
        self.largest_message: int | None = body.max_message_size or None
        self._prefix: bytes = t.encode_uint(self.handle)

    def granted(self, body: c.Flow) -> int:
        """The credit that a flow grants."""
        first = self.session.choices.first_delivery_count
        seen = first if body.delivery_count is None else body.delivery_count
        return max(0, beyond(seen, body.link_credit, self.delivery_count))

    def frames(self, number: int, tag: bytes, payload: bytes) -> list[bytes]:
        """The transfers of one message; all but the last say that more follow (1-0/transfer/more)."""
        session = self.session
        channel, choices = session.channel, session.choices
        settled = _TRUE if self.settled else _FALSE
        items = [self._prefix, t.encode_uint(number), t.encode_binary(tag), _ZERO, settled]
        nulls = [_NULL] * _FIELDS_BEHIND_MORE if choices.writes_trailing_nulls else []
        last = _TRANSFER + t.encode_items([*items, _FALSE if choices.writes_more else _NULL, *nulls])
        largest = session.connection.largest_sent - HEADER_SIZE
        if len(last) + len(payload) <= largest:
            return [frame(AMQP, channel, last + payload)]
        more = _TRANSFER + t.encode_items([*items, _TRUE, *nulls])
        room = largest - len(more)
        frames = []
        offset = 0
        while len(payload) - offset > room:
            frames.append(frame(AMQP, channel, more + payload[offset : offset + room]))
            offset += room
        frames.append(frame(AMQP, channel, last + payload[offset:]))
        return frames
