"""Exchanges that delay a message, and then route it as another type does."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from fakeamqp.model.arguments.exchange_arguments import DELAYED_TYPE
from fakeamqp.model.erlang import type_name
from fakeamqp.model.errors import InternalError, PreconditionFailed
from fakeamqp.model.exchanges.exchange import Exchange

if TYPE_CHECKING:
    from fakeamqp.model.arguments.exchange_arguments import ExchangeOptions
    from fakeamqp.model.exchanges.exchange import Binding, Destination, Target
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.virtual_host import VirtualHost

_LONGEST = 0xFFFFFFFF
_is_integer = re.compile(r"[+-]?[0-9]+", re.ASCII).fullmatch


class DelayedMessageExchange(Exchange):
    """Delays a message by the milliseconds in its header x-delay; `DelayedMessages` publishes it then.

    Bindings and routing are those of the type in x-delayed-type (RabbitMQ's delayed-message plugin:
    documented).
    """

    type_name = "x-delayed-message"
    by_key_alone = False

    def _prepare(self) -> None:
        self._inner = self._make_inner(self.bindings)

    def _make_inner(self, bindings: dict[Any, Binding]) -> Exchange:
        """An unregistered exchange of the inner type, with these bindings."""
        assert self.declared.delayed_type is not None
        kind = self.virtual_host.exchanges.type_called(self.declared.delayed_type)
        inner = kind(self.virtual_host, self.name, durable=self.durable, arguments=self.arguments)
        inner.bindings = bindings
        for binding in bindings.values():
            inner._added(binding)
        return inner

    @classmethod
    def check_declaration(
        cls, virtual_host: VirtualHost, name: str, arguments: Mapping[str, Any]
    ) -> ExchangeOptions:
        """The arguments name an inner type, and are legal for that as well."""
        options = super().check_declaration(virtual_host, name, arguments)
        inner = options.delayed_type
        if inner is None:
            raise PreconditionFailed(f"Invalid argument, '{DELAYED_TYPE}' must be an existing exchange type")
        if inner == cls.type_name:
            raise PreconditionFailed(f"Invalid argument, '{inner}' can't be used for '{DELAYED_TYPE}'")
        virtual_host.exchanges.type_called(inner).check_declaration(virtual_host, name, arguments)
        return options

    def validate(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        self._inner.validate(routing_key, arguments)

    def check_destination(self, destination: Destination) -> None:
        self._inner.check_destination(destination)

    def hold_back(self, message: Message) -> float:
        """Delay a message; InternalError if the header is not a number of milliseconds."""
        delay = _delay(message)
        if not 0 < delay <= _LONGEST:
            return 0.0
        self.virtual_host.delays.add(self, message, delay)
        return delay / 1000

    def delay(self, message: Message) -> float:
        delay = _delay(message)
        return delay / 1000 if 0 < delay <= _LONGEST else 0.0

    def route(self, keys: Sequence[str], message: Message) -> Iterable[Target]:
        """If another exchange has the name now, its bindings count."""
        return self.chooser.route(keys, message)

    @property
    def chooser(self) -> Exchange:
        present = self.virtual_host.exchanges.get(self.name, self)
        return self._inner if present is self else self._make_inner(present.bindings)

    def restarted(self) -> None:
        self._inner.restarted()

    def _added(self, binding: Binding) -> None:
        self._inner._added(binding)

    def _removed(self, binding: Binding) -> None:
        self._inner._removed(binding)


def _delay(message: Message) -> int:
    """The value of x-delay in milliseconds; 0 if it is missing or of a type that is ignored.

    The smallest integer type, tag b, is ignored as well: the plugin's list lacks it. Some clients
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
    raise InternalError(f"header x-delay holds {value!r:.60}, which is not a number of milliseconds")
