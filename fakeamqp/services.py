"""Services of a test: functions that system exchanges hand messages to (exchange-type.system/*)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fakeamqp.errors import near_match
from fakeamqp.inspect.messages import ContentView, content_of, elsewhere, name_of
from fakeamqp.model.errors import InternalError
from fakeamqp.model.exchanges.system import Service
from fakeamqp.registration import BadRegistration, Registration

if TYPE_CHECKING:
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.state import BrokerState
    from fakeamqp.runtime.engine import Engine

__all__ = ["BadRegistration", "Registration", "ServiceMessage", "Services"]

_log = logging.getLogger("fakeamqp")

_CONTENTS = ("basic", "file", "stream")
_LONGEST_NAME = 255
_RESERVED = "amq."


@dataclass(frozen=True, kw_only=True, repr=False)
class ServiceMessage(ContentView):
    """A message that a system exchange hands to a service.

    Args:
        virtual_host: the virtual host of the exchange.
        connection: the name of the publisher's connection; None if the test published the message.
    """

    virtual_host: str
    connection: str | None = None

    def __repr__(self) -> str:
        return f"<message {self.said()}{elsewhere(self.virtual_host)} for a service>"


class Services:
    """Registers the services of one broker, from any thread.

    Args:
        engine: the engine of the broker.
        state: the broker.
        publish: publishes the replies.
    """

    def __init__(self, engine: Engine, state: BrokerState, publish: Callable[..., object]) -> None:
        self._engine = engine
        self._state = state
        self._publish = publish
        self._registrations: list[Registration] = []

    def add(
        self,
        name: str,
        handler: Callable[[ServiceMessage], bytes | str | None],
        *,
        exchange: str,
        virtual_host: str,
        contents: Iterable[str] | None,
    ) -> Registration:
        _check_name(name)
        if not callable(handler):
            raise BadRegistration(f"the handler of service {name!r} must be callable, not {handler!r}")
        taken = None if contents is None else _content_classes(name, contents)
        registration = Registration(self._engine, self._state, f"the handler of service {name!r}")
        handle = registration.guard(lambda message: self._serve(handler, message, virtual_host))

        def handle_safely(message: Message) -> None:
            try:
                handle(message)
            except InternalError as problem:
                _log.warning("%s", problem)

        with self._engine:
            target = self._state.virtual_host(virtual_host)
            if name in target.services:
                raise BadRegistration(f"service {name!r} is registered already; remove it first")
            target.exchanges.add_system(exchange)
            service = target.services[name] = Service(target, name, handle_safely, taken)
            self._registrations.append(registration)

        def withdraw() -> None:
            service.deleted = True
            target.services.pop(name, None)

        return registration.until_removed(withdraw)

    def _serve(self, handler: Callable[[ServiceMessage], Any], message: Message, virtual_host: str) -> None:
        """Call the handler of a service, and publish its reply."""
        view = ServiceMessage(
            **content_of(message), virtual_host=virtual_host, connection=name_of(message.publisher)
        )
        reply = handler(view)
        if reply is None:
            return
        if not isinstance(reply, (bytes, str)):
            raise TypeError(f"the handler of a service returns bytes, str or None, not {reply!r}")
        if view.reply_to:
            self._publish(
                reply,
                routing_key=view.reply_to,
                virtual_host=virtual_host,
                correlation_id=view.correlation_id,
            )

    def raise_errors(self) -> None:
        """Raise the first exception that a handler has raised and that was not raised here before."""
        for registration in self._registrations:
            registration.raise_error()

    def clear(self) -> None:
        """Remove all services."""
        with self._engine:
            while self._registrations:
                self._registrations.pop().remove()


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not 0 < len(name.encode("utf-8", "replace")) <= _LONGEST_NAME:
        raise BadRegistration(
            f"the name of a service must be a str of 1 to {_LONGEST_NAME} bytes, not {name!r}"
        )
    if name.startswith(_RESERVED):  # exchange-type.system/amq-services-reserved
        raise BadRegistration(
            f"the name of a service must not begin with {_RESERVED!r}, which is reserved for AMQP: {name!r}"
        )


def _content_classes(name: str, contents: Iterable[str]) -> frozenset[str]:
    classes = (contents,) if isinstance(contents, str) else tuple(contents)
    for each in classes:
        if each not in _CONTENTS:
            raise BadRegistration(
                f"service {name!r}: there are no contents of class {each!r}{near_match(each, _CONTENTS)}"
            )
    return frozenset(classes)
