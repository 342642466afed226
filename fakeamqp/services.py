"""Functions and objects of a test that a broker uses until the test takes them back.

`Services` are functions that system exchanges hand messages to (exchange-type.system/*).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from fakeamqp.blocking import blocking
from fakeamqp.errors import FakeAMQPError, WaitTimeout, near_match
from fakeamqp.inspect.hints import span, wait_report
from fakeamqp.inspect.messages import ContentView, content_of, elsewhere, name_of
from fakeamqp.lazy import raise_if_renamed
from fakeamqp.model.errors import InternalError
from fakeamqp.model.exchanges.system import Service

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.state import BrokerState
    from fakeamqp.runtime.engine import Engine

__all__ = ["BadRegistration", "Registration", "ServiceMessage", "Services"]

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger("fakeamqp")

_CONTENTS = ("basic", "file", "stream")
_LONGEST_NAME = 255
_RESERVED = "amq."


class BadRegistration(FakeAMQPError):
    """An invalid registration; the text says why."""

    __module__ = "fakeamqp.services"


class Registration:
    """A handler or transport of the test that a broker uses until it is removed, or until its context ends.

    Attributes:
        error: the first exception that it has raised in the broker. `wait` raises it, and with the pytest
            plugin it fails the test.
    """

    if not TYPE_CHECKING:
        __getattr__ = raise_if_renamed

    def __init__(self, engine: Engine, state: BrokerState, what: str) -> None:
        self._engine = engine
        self._state = state
        self._what = what
        self._calls = 0
        self._removed = False
        self._error_told = False
        self.error: BaseException | None = None
        self._withdraw: Callable[[], object] = lambda: None

    def __repr__(self) -> str:
        state = "removed" if self._removed else "in use"
        return f"<Registration: {self._what}; {state}, calls={self._calls}>"

    @property
    def calls(self) -> int:
        """The number of calls by the broker."""
        return self._calls

    @blocking
    def wait(self, n: int = 1, timeout: float = 5.0) -> None:
        """Wait until the broker has called it `n` times in total.

        Args:
            n: the number of calls.
            timeout: in real seconds.

        Raises:
            WaitTimeout: there were fewer calls.
            Exception: the exception that it has raised in the broker.
        """
        self._check_called(n, timeout, self._engine.wait_until(self._called(n), timeout))

    @wait.coroutine
    async def _wait_coroutine(self, n: int = 1, timeout: float = 5.0) -> None:
        self._check_called(n, timeout, await self._engine.wait_until_async(self._called(n), timeout))

    def _called(self, n: int) -> Callable[[], bool]:
        return lambda: self._calls >= n or self._failed

    def _check_called(self, n: int, timeout: float, called: bool) -> None:
        self.raise_error()
        if not called:
            with self._engine:
                often = f"{self._calls} times in {span(self._state, timeout)}"
                text = f"{self._what} was called {often}, and not {n}"
                raise WaitTimeout(text + wait_report(self._state))

    def raise_error(self) -> None:
        """Raise the exception that it has raised in the broker, once."""
        if self._failed:
            self._error_told = True
            assert self.error is not None
            raise self.error

    def remove(self) -> None:
        """End its use by the broker. Idempotent."""
        with self._engine:
            if not self._removed:
                self._removed = True
                self._withdraw()

    @property
    def _failed(self) -> bool:
        return self.error is not None and not self._error_told

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.remove()

    def guard(self, function: Callable[P, T]) -> Callable[P, T]:
        """`function` for the broker: an exception is kept for the test, and closes the connection."""

        def guarded(*args: P.args, **keywords: P.kwargs) -> T:
            self._calls += 1
            try:
                return function(*args, **keywords)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # including pytest's outcome exceptions
                self.error = self.error or error
                raise InternalError(f"{self._what} has failed: {error!r}") from error

        return guarded

    def until_removed(self, withdraw: Callable[[], object]) -> Self:
        """Set the function that undoes the registration."""
        self._withdraw = withdraw
        return self


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
    """Registers the services of one broker, from any thread; `publish` publishes the replies."""

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
