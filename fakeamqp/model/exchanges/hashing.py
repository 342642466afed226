"""Exchanges that distribute messages by a hash: each to one destination, equal ones to the same one.

`ConsistentHashExchange` has a ring of buckets; the binding key is the number of buckets of its destination.
`ModulusHashExchange` takes the remainder by the number of bindings. Both compute the same as RabbitMQ, see
`erlang_hash`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fakeamqp.model.equivalence import type_name
from fakeamqp.model.erlang import Atom, term
from fakeamqp.model.errors import InternalError, PreconditionFailed
from fakeamqp.model.exchanges.erlang_hash import jump, phash2
from fakeamqp.model.exchanges.exchange import Exchange

if TYPE_CHECKING:
    from fakeamqp.model.arguments import ExchangeOptions
    from fakeamqp.model.exchanges.binding import Binding, Destination
    from fakeamqp.model.exchanges.erlang_hash import Term
    from fakeamqp.model.exchanges.exchange import Target
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["ConsistentHashExchange", "ModulusHashExchange", "Ring"]

T = TypeVar("T")

_SHORT = 64
"""A ring with up to this number of places is not cleared of empty ones."""


class Ring(Generic[T]):
    """Each member owns as many consecutive buckets as its weight, in the order in which members were added.

    The weights are in a Fenwick tree over the members' places: `add`, `remove` and `owner` cost the logarithm
    of the number of places. A removed member leaves an empty place, with no buckets, until such places are
    the majority.
    """

    __slots__ = ("_members", "_owned", "_sums", "buckets")

    def __init__(self) -> None:
        self.buckets: int = 0
        """How many there are."""
        self._members: list[T | None] = []
        self._owned: dict[T, tuple[int, int]] = {}
        """By member, its place, counted from 1, and its weight."""
        self._sums = [0]
        """By place, the sum of the weights of as many places up to it as the lowest set bit of its number."""

    def __contains__(self, member: T) -> bool:
        return member in self._owned

    def __len__(self) -> int:
        return len(self._owned)

    def add(self, member: T, weight: int) -> None:
        """Give a new member its buckets at the end."""
        self._members.append(member)
        place = len(self._members)
        self._owned[member] = (place, weight)
        self.buckets += weight
        total = weight
        before = place - 1
        while before > place - (place & -place):
            total += self._sums[before]
            before -= before & -before
        self._sums.append(total)

    def remove(self, member: T) -> None:
        """Take the buckets of a member away; those behind them move forwards."""
        place, weight = self._owned.pop(member)
        self._members[place - 1] = None
        self.buckets -= weight
        while place < len(self._sums):
            self._sums[place] -= weight
            place += place & -place
        if len(self._members) > max(_SHORT, 2 * len(self._owned)):
            owned = self._owned
            self.clear()
            for each, (_, its_weight) in owned.items():
                self.add(each, its_weight)

    def clear(self) -> None:
        """Remove all members."""
        self.buckets = 0
        self._members = []
        self._owned = {}
        self._sums = [0]

    def owner(self, bucket: int) -> T:
        """The member that owns a bucket; buckets count from 0."""
        place = 0
        step = 1 << len(self._members).bit_length()
        while step := step >> 1:
            if place + step < len(self._sums) and self._sums[place + step] <= bucket:
                place += step
                bucket -= self._sums[place]
        member = self._members[place]
        assert member is not None
        return member


_PROPERTIES = ("correlation_id", "message_id", "timestamp")
_UNDEFINED = Atom("undefined")
_is_integer = re.compile(r"[+-]?[0-9]+", re.ASCII).fullmatch


class ConsistentHashExchange(Exchange):
    """Routes a message to the destination that owns the bucket of the message's hash.

    A binding key is a weight: the number of buckets that its destination gets at the end of the ring. Only
    the first binding of a destination counts, and removing any of them removes the destination from the ring
    (RabbitMQ's consistent-hash plugin: documented and measured). The hash is that of the routing key, or of a
    header or property that the exchange's arguments name.
    """

    type_name = "x-consistent-hash"
    chooses = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._header = self.declared.hash_header
        self._property = self.declared.hash_property
        self.by_key_alone: bool
        self.by_key_alone = self._header is None and self._property is None
        self._ring: Ring[Destination] = Ring()

    @classmethod
    def check_declaration(
        cls, virtual_host: VirtualHost, name: str, arguments: Mapping[str, Any]
    ) -> ExchangeOptions:
        """A message has one hash."""
        options = super().check_declaration(virtual_host, name, arguments)
        if options.hash_header is not None and options.hash_property is not None:
            raise PreconditionFailed("hash-header and hash-property are mutually exclusive")
        if options.hash_property is not None and options.hash_property not in _PROPERTIES:
            raise PreconditionFailed(f"Unsupported property: {options.hash_property}")
        return options

    def validate(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        """Refuse a key that is not a weight."""
        if not _is_integer(routing_key):
            raise PreconditionFailed(f"The binding key must be an integer: {term(routing_key)}")
        largest = self.virtual_host.state.personality.largest_hash_weight
        weight = _integer(routing_key)
        if weight < 1:
            raise PreconditionFailed("The binding key must be greater than 0")
        if largest and weight > largest:
            raise PreconditionFailed(f"The binding key must not exceed {largest}")

    def route(self, keys: Sequence[str], message: Message) -> Iterable[Target]:
        """A message is hashed once, by its own key, whatever further keys it has."""
        if not self._ring:
            return ()
        return (self._ring.owner(self.bucket(keys, message)),)

    @property
    def buckets(self) -> int:
        """The number of buckets of the ring."""
        return self._ring.buckets

    @property
    def hashed(self) -> str:
        """The part of a message that is hashed, in words."""
        if self._header is not None:
            return f"header {self._header!r}"
        return "routing key" if self._property is None else f"property {self._property}"

    def bucket(self, keys: Sequence[str], message: Message) -> int:
        """The bucket that a message falls into, counted from 0; there must be one.

        Raises:
            InternalError: the hashed value has no hash.
        """
        buckets = self._ring.buckets
        return 0 if buckets == 1 else jump(self._key(keys[0], message), buckets)

    def _key(self, routing_key: str, message: Message) -> int:
        if self._header is not None:
            personality = self.virtual_host.state.personality
            headers = (
                message.properties.last_headers() if personality.matches_last_header else message.headers
            )
            hashed = _header_term(headers.get(self._header), personality.hashes_empty_headers)
        elif self._property is not None:
            value = getattr(message.properties, self._property)
            hashed = _UNDEFINED if value is None else _octets(str(value))
        else:
            hashed = _octets(routing_key)
        return hashed if isinstance(hashed, int) else phash2(hashed)

    def restarted(self) -> None:
        """Bindings that did not count may count now."""
        if self.virtual_host.state.personality.bindings_sorted_by == "key":
            self._ring.clear()
        for binding in sorted(self.bindings.values(), key=_by_key):
            self._added(binding)

    def _added(self, binding: Binding) -> None:
        if binding.destination not in self._ring:
            self._ring.add(binding.destination, _integer(binding.routing_key))

    def _removed(self, binding: Binding) -> None:
        if binding.destination in self._ring:
            self._ring.remove(binding.destination)


class ModulusHashExchange(Exchange):
    """Routes a message to one binding, by the hash of its keys modulo the number of bindings.

    Binding keys have no effect. The personality decides the order of the bindings.
    """

    type_name = "x-modulus-hash"
    chooses = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._counted: list[Binding] | None = None

    def route(self, keys: Sequence[str], message: Message) -> Iterable[Target]:
        """All keys of a message are hashed together."""
        if not self.bindings:
            return ()
        if self._counted is None:
            order = self.virtual_host.state.personality.bindings_sorted_by
            counted = list(self.bindings.values())
            if order != "age":
                counted.sort(key=_by_key if order == "key" else _by_destination)
            self._counted = counted
        hashed = phash2([_octets(key) for key in keys])
        return (self._counted[hashed % len(self._counted)].destination,)

    def _added(self, binding: Binding) -> None:
        self._counted = None

    def _removed(self, binding: Binding) -> None:
        self._counted = None


def _by_destination(binding: Binding) -> tuple[str, bytes]:
    return binding.destination.kind, _octets(binding.destination.name)


def _by_key(binding: Binding) -> tuple[bytes, str, bytes]:
    return (_octets(binding.routing_key), *_by_destination(binding))


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _integer(text: str) -> int:
    """A binding key as a number; keys are short strings, so it has at most 255 digits."""
    return int(text)


def _header_term(value: Any, hashes_empty: bool) -> Term:
    """The term that RabbitMQ hashes for a header; integers are not hashed but used as keys.

    Raises:
        InternalError: the header is empty, in personalities that cannot hash that.
    """
    if isinstance(value, (list, tuple, Mapping)):
        # Only the first item counts.
        items = _term(value)
        assert isinstance(items, list)
        if items or hashes_empty:
            return items[0] if items else items
        raise InternalError("an empty array or table in the header that is hashed has no hash")
    if type_name(value) == "timestamp":
        return int(value) * 1000
    return _term(value)


def _term(value: Any) -> Term:
    """A field value as RabbitMQ's Erlang term."""
    if isinstance(value, str):
        return _octets(value)
    if isinstance(value, bool):
        return Atom(str(value).lower())
    if isinstance(value, (bytes, int, float)):
        return value
    if isinstance(value, Decimal):
        sign, digits, places = value.as_tuple()
        mantissa = int("".join(map(str, digits)))
        return (-int(places), -mantissa if sign else mantissa)
    if isinstance(value, Mapping):
        return [(_octets(name), Atom(type_name(item)), _term(item)) for name, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [(Atom(type_name(item)), _term(item)) for item in value]
    return _UNDEFINED
