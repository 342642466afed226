"""Exchanges that keep a message for as long as it asks and then pass it on as another type would."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from fakeamqp.model.equivalence import type_name
from fakeamqp.model.errors import InternalError, PreconditionFailed
from fakeamqp.model.exchanges.exchange import Exchange

if TYPE_CHECKING:
    from fakeamqp.model.binding import Binding, Destination
    from fakeamqp.model.exchanges.exchange import Target
    from fakeamqp.model.message import Message
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["DelayedMessageExchange"]

_LONGEST = 0xFFFFFFFF
_is_integer = re.compile(r"[+-]?[0-9]+", re.ASCII).fullmatch


class DelayedMessageExchange(Exchange):
    """Keeps a message for the milliseconds its header x-delay says; see `delays` for what happens then.

    Bindings and routing are those of the type that x-delayed-type names (RabbitMQ's delayed-message plugin:
    documented).
    """

    type_name = "x-delayed-message"
    by_key_alone = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._inner = self._make_inner(self.bindings)

    def _make_inner(self, bindings: dict[Any, Binding]) -> Exchange:
        """An exchange of the inner type that nobody else knows, with these bindings."""
        kind = self.virtual_host.exchange_type(self.arguments["x-delayed-type"])
        inner = kind(self.virtual_host, self.name, durable=self.durable, arguments=self.arguments)
        inner.bindings = bindings
        for binding in bindings.values():
            inner._added(binding)
        return inner

    @classmethod
    def check_declaration(cls, virtual_host: VirtualHost, arguments: Mapping[str, Any]) -> None:
        """Refuse what names no inner type, or is not as that type wants it."""
        inner = arguments.get("x-delayed-type")
        if not isinstance(inner, str):
            raise PreconditionFailed("Invalid argument, 'x-delayed-type' must be an existing exchange type")
        if inner == cls.type_name:
            raise PreconditionFailed(f"Invalid argument, '{inner}' can't be used for 'x-delayed-type'")
        virtual_host.exchange_type(inner).check_declaration(virtual_host, arguments)

    def validate(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        """Refuse what the inner type refuses."""
        self._inner.validate(routing_key, arguments)

    def check_destination(self, destination: Destination) -> None:
        """Refuse what the inner type refuses."""
        self._inner.check_destination(destination)

    def hold_back(self, message: Message) -> float:
        """See the base class.

        Raises:
            InternalError: the header is text but no number, or of a type that cannot be one.
        """
        delay = _counted_delay(message)
        if delay:
            self.virtual_host.delays.add(self, message, delay)
        return delay / 1000

    def delay(self, message: Message) -> float:
        """See the base class; raises as `hold_back` does."""
        return _counted_delay(message) / 1000

    def route(self, keys: Sequence[str], message: Message) -> Iterable[Target]:
        """See the base class. Where another exchange has the name by now, its bindings count."""
        return self.chooser.route(keys, message)

    @property
    def chooser(self) -> Exchange:
        """See the base class: one of the inner type."""
        present = self.virtual_host.exchanges.get(self.name, self)
        return self._inner if present is self else self._make_inner(present.bindings)

    def restarted(self) -> None:
        """See the base class."""
        self._inner.restarted()

    def _added(self, binding: Binding) -> None:
        self._inner._added(binding)

    def _removed(self, binding: Binding) -> None:
        self._inner._removed(binding)


def _counted_delay(message: Message) -> int:
    """What x-delay says where that is a delay, in milliseconds; otherwise 0."""
    delay = _delay(message)
    return delay if 0 < delay <= _LONGEST else 0


def _delay(message: Message) -> int:
    """What x-delay says, in milliseconds; 0 where it is missing or of a type that does not count.

    The smallest kind of whole number, tag b, does not count either: the plugin's list lacks it. Some clients
    write numbers up to 127 that way.
    """
    headers = message.properties.headers
    if not headers or "x-delay" not in headers:
        return 0
    value = headers["x-delay"]
    if isinstance(value, (str, bytes)):
        text = value if isinstance(value, str) else value.decode("ascii", "replace")
        if _is_integer(text) and len(text) < 30:
            return int(text)
    elif isinstance(value, float):
        if math.isfinite(value):
            return math.trunc(value)
    elif isinstance(value, int) and type_name(value) in ("signedint", "long"):
        return 0 if message.properties.header_tag("x-delay") == "b" else value
    elif value is not None and not isinstance(value, Decimal):
        return 0
    raise InternalError(f"header x-delay holds {value!r:.60}, which is no number of milliseconds")
