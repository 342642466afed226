"""Caches the header segments of transfers to the broker.

Programs publish to the same few exchanges, with the same few header segments, again and again. So a session
keeps a `TransferTarget` for each exchange it publishes to, with the decoded header segments by their octets:
that gives twice the transfers per second. A segment is kept when it comes a second time, because many
programs give each message an id. Such programs mostly repeat the delivery-properties, which are kept apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from fakeamqp.protocols.amqp_0_10.codec.structs import DeliveryProperties, MessageProperties
from fakeamqp.protocols.amqp_0_10.message import delivering
from fakeamqp.protocols.amqp_0_10.properties import TransferProperties

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.protocols.amqp_0_10.codec.structs import FragmentProperties

__all__ = ["Heading", "TransferTarget"]

_MOST_KEPT = 1000
"""So many of each kind are kept for each target."""
_LONGEST_KEPT = 1024
"""Header segments of more bytes are not kept: they hardly repeat."""
_DELIVERY = DeliveryProperties.INDEX.to_bytes(2, "big")
_MESSAGE = MessageProperties.INDEX.to_bytes(2, "big")

_K = TypeVar("_K")
_V = TypeVar("_V")


class Heading:
    """A decoded header segment. `octets` is what subscribers of 0-10 get in its place."""

    __slots__ = (
        "content_length",
        "discards",
        "fragment",
        "immediate",
        "key",
        "octets",
        "properties",
        "resume_id",
        "resume_ttl",
        "ttl",
    )

    def __init__(self, properties: TransferProperties, octets: bytes) -> None:
        self.properties: TransferProperties = properties
        self.octets: bytes = octets
        delivery, message = properties.delivery, properties.message
        self.key: str = ""
        self.discards: bool = False
        self.immediate: bool = False
        self.ttl: int | None = None
        self.resume_id: str | None = None
        self.resume_ttl: int | None = None
        if delivery is not None:
            self.key = delivery.routing_key or ""
            self.discards, self.immediate = delivery.discard_unroutable, delivery.immediate
            self.ttl = delivery.ttl
            self.resume_id, self.resume_ttl = delivery.resume_id, delivery.resume_ttl
        self.content_length: int | None = None if message is None else message.content_length
        self.fragment: FragmentProperties | None = properties.fragment


class TransferTarget:
    """An exchange that a session publishes to; `checked` is the state of access control of its check."""

    __slots__ = ("_deliveries", "_seen", "checked", "exchange", "headings", "keys", "name", "throttled")

    def __init__(self, exchange: Exchange) -> None:
        self.name: str = exchange.name
        self.exchange: Exchange = exchange
        self.checked: int = -1
        self.keys: set[str] = set()
        """The keys that the user may publish with, where that depends on them."""
        self.headings: dict[bytes | None, Heading] = {}
        self.throttled: bool = False
        """Whether the client was told to publish nothing here for now."""
        self._deliveries: dict[bytes, tuple[DeliveryProperties, bytes]] = {}
        """Bytes of delivery-properties -> what they say, and what is forwarded of them."""
        self._seen: dict[int, None] = {}
        """The hashes of header segments that came once."""

    def permit(self, key: str) -> None:
        """Note that the user may publish with this key."""
        if len(self.keys) >= _MOST_KEPT:
            self.keys.clear()
        self.keys.add(key)

    def keep(self, header: bytes | None, heading: Heading) -> None:
        """Keep a decoded header segment, once it comes a second time."""
        if header is not None and len(header) > _LONGEST_KEPT:
            return
        known = hash(header)
        if known in self._seen:
            _put(self.headings, header, heading)
        else:
            _put(self._seen, known, None)

    def read(self, header: bytes | None) -> Heading:
        """Read a header segment.

        Raises:
            SegmentError: it cannot be read, or has a struct twice, or a value out of its domain.
        """
        octets = header or b""
        # Nearly all are delivery-properties alone, or with message-properties behind them. Measured with an
        # id for each message, against taking struct by struct: 1.5 times the transfers per second.
        size = 4 + int.from_bytes(octets[:4], "big")
        rest = octets[size:]
        usual = octets[4:6] == _DELIVERY and rest[4:6] == _MESSAGE
        if usual and 4 + int.from_bytes(rest[:4], "big") == len(rest):
            delivery, forwarded = self._read_delivery(octets[:size])
            message = MessageProperties.decode(rest)
            return Heading(TransferProperties.of_structs(delivery, message, rest), forwarded + rest)
        properties = TransferProperties.decode(header)
        return Heading(properties, delivering.forwarded(properties, self.name))

    def _read_delivery(self, octets: bytes) -> tuple[DeliveryProperties, bytes]:
        known = self._deliveries.get(octets)
        if known is None:
            properties = TransferProperties.decode(octets)
            assert properties.delivery is not None
            known = properties.delivery, delivering.forwarded(properties, self.name)
            _put(self._deliveries, octets, known)
        return known


def _put(kept: dict[_K, _V], key: _K, value: _V) -> None:
    """Keep an entry; clear the cache first when it is full."""
    if len(kept) >= _MOST_KEPT:
        kept.clear()
    kept[key] = value
