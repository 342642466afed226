"""`Control`: what the routes work with."""

from __future__ import annotations

import secrets
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from fakeamqp.management.errors import not_found

if TYPE_CHECKING:
    from fakeamqp.broker import Broker
    from fakeamqp.faults.handle import Handle
    from fakeamqp.inspect.handles import ConnectionHandle
    from fakeamqp.model.state import BrokerState
    from fakeamqp.proxy import Proxy
    from fakeamqp.runtime.engine import Engine

PREFIX = "/control/v1"


class Control:
    """One broker or proxy, as other processes control it.

    Args:
        endpoint: the broker or the proxy.

    Attributes:
        engine: its engine.
        state: its model, which is read inside the engine only.
        token: the secret that a client needs; `address` contains it.
    """

    def __init__(self, endpoint: Broker | Proxy) -> None:
        # Most routes are those of a broker; what a proxy lacks is in its `_impossible`.
        self.endpoint: Any = endpoint
        self.engine: Engine = endpoint._engine
        self.state: BrokerState = endpoint._state
        self.token: str = secrets.token_urlsafe(18)
        self._numbers: WeakKeyDictionary[Handle, int] = WeakKeyDictionary()
        self._next = count(1)

    def address(self, url: str) -> str:
        """The address of the interface, with the token in its fragment, which no client sends.

        Args:
            url: of the HTTP server, such as "http://127.0.0.1:15672/".
        """
        return f"{url.rstrip('/')}{PREFIX}#token={self.token}"

    def number_of(self, fault: Handle) -> int:
        """The number by which a fault is known. No other fault of this broker ever has it."""
        if fault not in self._numbers:
            self._numbers[fault] = next(self._next)
        return self._numbers[fault]

    def faults(self) -> list[Handle]:
        """All faults since the last reset, oldest first, ended ones included.

        Reading `endpoint.faults` would import the package where there are none.
        """
        faults = self.endpoint._faults
        return [] if faults is None else list(faults._handles)

    def fault(self, number: str) -> Handle:
        """A fault by its number.

        Raises:
            Refused: 404: there is none.
        """
        numbers = {str(self.number_of(each)): each for each in self.faults()}
        if number not in numbers:
            raise not_found(f"there is no fault {number}; there {_listed(list(numbers))}")
        return numbers[number]

    def connection(self, name: str) -> ConnectionHandle:
        """A connection by its name, its short name in the trace, or the client's name for itself.

        Raises:
            Refused: 404: there is none.
        """
        recorder = self.endpoint._recorder
        found: list[ConnectionHandle] = list(self.endpoint.connections)
        for each in found:
            alias = None if recorder is None else recorder.alias(each.name)
            if name in (each.name, alias, each.connection_name):
                return each
        open_ones = _listed([each.connection_name or each.name for each in found])
        raise not_found(f"connection {name!r} is closed or was never open; there {open_ones}")


def _listed(names: list[str]) -> str:
    return f"are {', '.join(names)}" if len(names) > 1 else f"is only {names[0]}" if names else "is none"
