"""Exchanges that match the headers of a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fakeamqp.model.equivalence import freeze
from fakeamqp.model.erlang import type_name
from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.exchanges.exchange import Exchange

if TYPE_CHECKING:
    from fakeamqp.model.exchanges.exchange import Binding, ExactFields, Target
    from fakeamqp.model.messages.message import Message

__all__ = ["HeadersExchange"]


class HeadersExchange(Exchange):
    """Routes a message if the binding's arguments match its headers (exchange-type.headers/*)."""

    type_name = "headers"
    by_key_alone = False

    def _prepare(self) -> None:
        self._wanted: dict[Binding, _Wanted] = {}
        personality = self.virtual_host.state.personality
        self._exactly = personality.compares_widths
        self._in_milliseconds = personality.timestamps_match_in_milliseconds
        self._by_value = personality.numbers_match_by_value
        self._in_turn = personality.duplicates_match_in_turn
        self._last = personality.matches_last_header

    def validate(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        """Refuse an x-match that is not one of the four known (exchange-type.headers/invalid-match)."""
        match = arguments.get("x-match", "all")
        if not isinstance(match, str):
            raise PreconditionFailed(
                f"Invalid x-match field type {type_name(match)} (value {_erlang(match)}); expected longstr"
            )
        if match not in ("all", "any", "all-with-x", "any-with-x"):
            raise PreconditionFailed(
                f"Invalid x-match field value {_erlang(match)}; expected all, any, all-with-x, or any-with-x"
            )

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        headers = self._received(message)
        return [binding.destination for binding, wanted in self._wanted.items() if wanted.met_by(headers)]

    def differences(self, binding: Binding, message: Message) -> list[str]:
        """The names of the headers that a binding requires and the message does not match."""
        return self._wanted[binding].unmet(self._received(message))

    def asks_for_any(self, binding: Binding) -> bool:
        """Whether one matching header is enough for a binding."""
        return self._wanted[binding].any

    def asked(self, binding: Binding) -> int:
        """How many headers a binding requires."""
        return len(self._wanted[binding].values)

    def _received(self, message: Message) -> dict[str, Any]:
        """The headers of a message in comparable form."""
        sent = message.properties.last_headers() if self._last else message.headers
        headers = {name: self._sent(value) for name, value in sent.items()}
        if self._in_turn:
            return self._numbered(message, headers)
        if any(isinstance(value, (dict, list)) for value in sent.values()):
            for name, value, octets in message.properties.exact_headers() or ():
                if isinstance(value, (dict, list)) and isinstance(sent[name], (dict, list)):
                    headers[name] = _Nested(value, octets)
        return headers

    def _numbered(self, message: Message, headers: dict[str, Any]) -> dict[str, Any]:
        """The headers with those that share a name: the further ones as `_numbered_names` calls them."""
        exact = message.properties.exact_headers()
        if exact is None:
            return headers
        names = _numbered_names(name for name, *_ in exact)
        return {
            key: _Nested(value, octets)
            if self._exactly and isinstance(value, (dict, list))
            else self._sent(value)
            for key, (_, value, octets) in zip(names, exact, strict=True)
        }

    def _sent(self, value: Any) -> Any:
        """A message's header in comparable form; some personalities compare timestamps in milliseconds."""
        if self._in_milliseconds and isinstance(value, int) and type(value) not in (int, bool):
            return int(value) * 1000  # A timestamp is the only other integer type.
        return _matchable(value, self._by_value)

    def _added(self, binding: Binding) -> None:
        self._wanted[binding] = _Wanted(
            binding.arguments, binding.exact, by_value=self._by_value, in_turn=self._in_turn
        )

    def _removed(self, binding: Binding) -> None:
        del self._wanted[binding]


class _Wanted:
    """The headers that the arguments of one binding require; without x-match all must match.

    Source: exchange-type.headers/default-match. `by_value` and `in_turn` are the choices
    `numbers_match_by_value` and `duplicates_match_in_turn`.
    """

    __slots__ = ("any", "values")

    def __init__(
        self, arguments: Mapping[str, Any], exact: ExactFields | None, *, by_value: bool, in_turn: bool
    ) -> None:
        match = arguments.get("x-match", "all")
        with_x = match.endswith("-with-x")
        self.any: bool = match.startswith("any")
        fields = exact or tuple((name, value, b"") for name, value in arguments.items())
        given = [name for name, *_ in fields]
        keys = _numbered_names(given) if in_turn else given
        # None, the void, matches any value. Of several fields with one name each counts (measured).
        self.values = tuple(
            (key, _Nested(value, octets) if isinstance(value, (dict, list)) else _matchable(value, by_value))
            for key, (name, value, octets) in zip(keys, fields, strict=True)
            if name != "x-match" and (with_x or not name.startswith("x-"))
        )

    def met_by(self, headers: Mapping[str, Any]) -> bool:
        """Whether these headers, in comparable form, match."""
        for name, value in self.values:
            met = name in headers and (value is None or headers[name] == value)
            if met is self.any:
                return self.any
        return not self.any

    def unmet(self, headers: Mapping[str, Any]) -> list[str]:
        """The names of the required headers that these, in comparable form, do not match."""
        return [
            name
            for name, value in self.values
            if name not in headers or (value is not None and headers[name] != value)
        ]


class _Nested:
    """A table or an array: equal to one with the same bytes, or if there are none, with the same values.

    In RabbitMQ the order of fields and the width of integers count there (measured).
    """

    __slots__ = ("_octets", "_values")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any, octets: bytes) -> None:
        self._octets = octets
        self._values = freeze(value)

    def __eq__(self, other: object) -> bool:
        values: object = self._values
        if not isinstance(other, _Nested):
            return values == other
        if self._octets and other._octets:
            return self._octets == other._octets
        others: object = other._values
        return values == others


def _numbered_names(names: Iterable[str]) -> list[str]:
    """Names that are all different: the second `a` is called `a` with a NUL and its number behind it."""
    seen: Counter[str] = Counter()
    numbered = []
    for name in names:
        numbered.append(f"{name}\0{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return numbered


def _matchable(value: Any, by_value: bool) -> Any:
    """The comparable form of a header: text and bytes with the same content are equal (measured).

    With `by_value` 1 and 1.0 are equal as well.
    """
    if by_value and isinstance(value, float):
        return value
    return freeze(value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value)


def _erlang(value: Any) -> str:
    """A value in the form of RabbitMQ's text."""
    if isinstance(value, (str, bytes)):
        text = value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")
        return f'<<"{text}">>' if text else "<<>>"
    if value is None:
        return "undefined"
    return str(value).lower() if isinstance(value, bool) else str(value)
