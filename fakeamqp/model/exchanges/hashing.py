"""Exchanges that route each message to one of their destinations: by a hash, or at random.

`ConsistentHashExchange` has a ring of buckets; the binding key is the number of buckets of its destination.
`ModulusHashExchange` takes the remainder by the number of bindings. Both compute the same as RabbitMQ: a test
that publishes with a key must reach the same queue as in production. So this module computes what Erlang
computes, bit for bit: `phash2`, the portable hash of Erlang terms (the algorithm is Bob Jenkins' of 1996 over
words of 32 bits), and `jump`, the jump consistent hash of Lamping and Veach, whose random numbers come from
Erlang's exs1024. Both are the same on every version and machine, as Erlang promises.

Erlang terms are: bytes for a binary, `Atom`, int, float, tuple, list. Lists of numbers are not supported:
they hash differently and are not needed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, Union

from fakeamqp.model.erlang import Atom, term, type_name
from fakeamqp.model.errors import InternalError, PreconditionFailed
from fakeamqp.model.exchanges.exchange import Exchange

if TYPE_CHECKING:
    from fakeamqp.model.arguments.exchange_arguments import ExchangeOptions
    from fakeamqp.model.exchanges.exchange import Binding, Destination, Target
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.virtual_host import VirtualHost

T = TypeVar("T")

Term: TypeAlias = Union[Atom, bytes, int, float, "tuple[Term, ...]", "list[Term]"]

_MASK_32 = 0xFFFFFFFF
_MASK_64 = 0xFFFFFFFFFFFFFFFF
_GOLDEN = 0x9E3779B9

# What is mixed in by kind of term: small multiples of the golden ratio.
_TABLE = {number: _GOLDEN * number & _MASK_32 for number in range(1, 17)}
_EMPTY_LIST = 3468870702

_read_block = struct.Struct("<III").unpack_from
_pack_double = struct.Struct("<d").pack
_read_double_words = struct.Struct("<II").unpack


def phash2(term: Term, bits: int = 27) -> int:
    """Erlang's `erlang:phash2/1`, or with 32 bits `erlang:phash2(Term, 1 bsl 32)`."""
    return _hashed(term, 0) & ((1 << bits) - 1)


def _hashed(term: Term, so_far: int) -> int:
    """The running hash with `term` added; `so_far` is 0 at the beginning."""
    if isinstance(term, bytes):
        start = _TABLE[13] + so_far & _MASK_32
        return _hashed_bytes(term, start) if term else start
    if isinstance(term, Atom):
        value = _hashed_name(term)
        return _with_words(value, 0, 3, so_far) if so_far else value
    if isinstance(term, int):
        return _hashed_integer(term, so_far)
    if isinstance(term, float):
        low, high = _read_double_words(_pack_double(term or 0.0))  # There is but one zero.
        return _with_words(high, low, 12, so_far)
    if isinstance(term, tuple):
        so_far = _with_words(len(term), 0, 9, so_far)
        for item in term:
            so_far = _hashed(item, so_far)
        return so_far
    for item in term:
        so_far = _hashed(item, so_far)
    return _with_words(2, 0, 2, so_far) if so_far else _EMPTY_LIST


def _hashed_integer(value: int, so_far: int) -> int:
    if -(1 << 27) <= value < 1 << 27:
        if value < 0:
            so_far = _with_words(-value, 0, 1, so_far)
        return _with_words(value & _MASK_32, 0, 1, so_far)
    kind, rest = (10, -value) if value < 0 else (11, value)
    while rest:
        so_far = _with_words(rest & _MASK_32, rest >> 32 & _MASK_32, kind, so_far)
        rest >>= 64
    return so_far


def _with_words(one: int, two: int, kind: int, so_far: int) -> int:
    constant = _TABLE[kind]
    return _mixed(constant + one & _MASK_32, constant + two & _MASK_32, so_far)[2]


def _hashed_bytes(octets: bytes, start: int) -> int:
    size = len(octets)
    octets += bytes(12 - size % 12)
    a = b = _GOLDEN
    c = start
    whole = size - size % 12
    for offset in range(0, whole, 12):
        one, two, three = _read_block(octets, offset)
        a, b, c = _mixed(a + one & _MASK_32, b + two & _MASK_32, c + three & _MASK_32)
    one, two, three = _read_block(octets, whole)
    # The lowest byte of the third word is the length's.
    return _mixed(a + one & _MASK_32, b + two & _MASK_32, c + size + (three << 8) & _MASK_32)[2]


def _hashed_name(name: str) -> int:
    """The hash of an atom's name: Weinberger's, known from ELF."""
    value = 0
    for octet in name.encode():
        value = (value << 4) + octet & _MASK_32
        high = value & 0xF0000000
        if high:
            value ^= high >> 24
            value ^= high
    return value


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    a = (a - b - c & _MASK_32) ^ c >> 13
    b = (b - c - a & _MASK_32) ^ (a << 8 & _MASK_32)
    c = (c - a - b & _MASK_32) ^ b >> 13
    a = (a - b - c & _MASK_32) ^ c >> 12
    b = (b - c - a & _MASK_32) ^ (a << 16 & _MASK_32)
    c = (c - a - b & _MASK_32) ^ b >> 5
    a = (a - b - c & _MASK_32) ^ c >> 3
    b = (b - c - a & _MASK_32) ^ (a << 10 & _MASK_32)
    c = (c - a - b & _MASK_32) ^ b >> 15
    return a, b, c


_MASK_21 = (1 << 21) - 1
_MASK_33 = (1 << 33) - 1
_MASK_39 = (1 << 39) - 1


@lru_cache(maxsize=10_000)
def jump(key: int, buckets: int) -> int:
    """The bucket of `key`, counted from 0. One more bucket moves keys only to the new bucket.

    Takes about 20 microseconds; recent keys are cached.
    """
    if buckets == 1:
        return 0
    numbers = _Exs1024(key)
    chosen, following = 0, 0
    while following < buckets:
        chosen = following
        following = int((chosen + 1) / numbers.next())
    return chosen


class _Exs1024:
    """Erlang's random number generator of this name, seeded with three copies of a key."""

    def __init__(self, key: int) -> None:
        seed = (key & _MASK_21) + 1
        one, two, three = (seed * prime & _MASK_21 for prime in (2097131, 2097133, 2097143))
        x = one << 43 | two << 22 | three << 1 | 1
        state = []
        for _ in range(16):
            x ^= x >> 12
            x ^= (x & _MASK_39) << 25
            x ^= x >> 27
            state.append(x * 2685821657736338717 & _MASK_64)
        state.reverse()
        self._state = state
        self._position = 0

    def next(self) -> float:
        """The next number, at least 0 and less than 1."""
        state, position = self._state, self._position
        following = self._position = position + 1 & 15
        zero, one = state[position], state[following]
        one ^= (one & _MASK_33) << 31
        one ^= one >> 11
        one ^= zero ^ zero >> 30
        state[following] = one
        return (one * 1181783497276652981 & _MASK_64) / 18446744073709551616


_SHORT = 64
"""A ring with up to this number of places is not cleared of empty ones."""


class Ring(Generic[T]):
    """Each member owns as many consecutive buckets as its weight, in the order in which members were added.

    The weights are in a Fenwick tree over the members' places: `add`, `remove` and `owner` cost the logarithm
    of the number of places. A removed member leaves an empty place, with no buckets, until such places are
    the majority.
    """

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
        self.buckets = 0
        self._members = []
        self._owned = {}
        self._sums = [0]

    def owner(self, bucket: int) -> T:
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

    def _prepare(self) -> None:
        self._header = self.declared.hash_header
        self._property = self.declared.hash_property
        self.by_key_alone: bool = self._header is None and self._property is None
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
        if not _is_integer(routing_key):
            raise PreconditionFailed(f"The binding key must be an integer: {term(routing_key)}")
        largest = self.virtual_host.state.personality.largest_hash_weight
        weight = int(routing_key)  # A short string: it has at most 255 digits.
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
        return self._ring.buckets

    @property
    def hashed(self) -> str:
        """The part of a message that is hashed, in words."""
        if self._header is not None:
            return f"header {self._header!r}"
        return "routing key" if self._property is None else f"property {self._property}"

    def bucket(self, keys: Sequence[str], message: Message) -> int:
        """The bucket of a message, counted from 0; there must be one. InternalError if nothing is hashed."""
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
            self._ring.add(binding.destination, int(binding.routing_key))

    def _removed(self, binding: Binding) -> None:
        if binding.destination in self._ring:
            self._ring.remove(binding.destination)


class _OneOfAllExchange(Exchange):
    """Routes a message to one of its bindings; binding keys have no effect."""

    chooses = True

    def _prepare(self) -> None:
        self._candidates: tuple[Destination, ...] | None = None

    @property
    def candidates(self) -> Sequence[Destination]:
        """The possible destinations, once for each binding."""
        if self._candidates is None:
            self._candidates = tuple(each.destination for each in self._in_order())
        return self._candidates

    def _in_order(self) -> Iterable[Binding]:
        return self.bindings.values()

    def _added(self, binding: Binding) -> None:
        self._candidates = None

    def _removed(self, binding: Binding) -> None:
        self._candidates = None


class RandomExchange(_OneOfAllExchange):
    """Routes a message to one of its bindings at random; keys select nothing (RabbitMQ: documented).

    All bindings are equally likely. The choice uses the broker's random numbers, so that a broker with a seed
    repeats its choices.
    """

    type_name = "x-random"
    by_key_alone = False

    def route(self, keys: Sequence[str], message: Message) -> Iterable[Target]:
        among = self.candidates
        if len(among) < 2:
            return among
        return (self.virtual_host.state.random.choice(among),)


class ModulusHashExchange(_OneOfAllExchange):
    """Routes a message by the hash of its keys modulo the number of bindings, in the personality's order."""

    type_name = "x-modulus-hash"

    def route(self, keys: Sequence[str], message: Message) -> Iterable[Target]:
        """All keys of a message are hashed together."""
        among = self.candidates
        if not among:
            return ()
        return (among[phash2([_octets(key) for key in keys]) % len(among)],)

    def _in_order(self) -> Iterable[Binding]:
        order = self.virtual_host.state.personality.bindings_sorted_by
        if order == "age":
            return super()._in_order()
        return sorted(self.bindings.values(), key=_by_key if order == "key" else _by_destination)


class LocalRandomExchange(RandomExchange):
    """A random exchange for classic queues on the publisher's node, as all are (RabbitMQ 4.0: documented)."""

    type_name = "x-local-random"

    def validate(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        if routing_key:
            raise PreconditionFailed(f"Non empty binding '{routing_key}' key not permitted")

    def check_destination(self, destination: Destination) -> None:
        if destination.kind != "queue":
            raise PreconditionFailed("Destination not found")
        if destination.type_name != "classic":
            raise PreconditionFailed(
                f"Queue type rabbit_{destination.type_name}_queue not valid for this exchange type"
            )


def _by_destination(binding: Binding) -> tuple[str, bytes]:
    return binding.destination.kind, _octets(binding.destination.name)


def _by_key(binding: Binding) -> tuple[bytes, str, bytes]:
    return (_octets(binding.routing_key), *_by_destination(binding))


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _header_term(value: Any, hashes_empty: bool) -> Term:
    """What RabbitMQ hashes for a header, or an integer key; an empty one is an error, by personality."""
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
