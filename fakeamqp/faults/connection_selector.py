"""Which connections a fault concerns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.faults.errors import FaultError

if TYPE_CHECKING:
    from fakeamqp.faults.fault_port import FaultPort

__all__ = ["ConnectionSelector"]


class ConnectionSelector:
    """Selects connections by one of their names.

    Args:
        said: a connection's name, its short name in the trace, the name the client gave itself, or one of
            `Broker.connections`.
        alias: returns the short name of a connection.

    Raises:
        FaultError: `said` cannot name a connection.
    """

    def __init__(self, said: Any, alias: Callable[[str], str | None]) -> None:
        self.said: str | Any = said if isinstance(said, str) else getattr(said, "name", said)
        if not isinstance(self.said, str) or not self.said:
            raise FaultError(f"a connection is named by a str, or is one of broker.connections, not {said!r}")
        self._alias = alias

    def names(self, port: FaultPort) -> str:
        """All names of a connection, for people."""
        others = [repr(name) for name in (port.client_name, self._alias(port.name)) if name]
        return repr(port.name) + (f" ({', '.join(others)})" if others else "")

    def selects(self, port: FaultPort) -> bool:
        """True if it selects this connection."""
        return self.said in (port.name, port.client_name) or self.said == self._alias(port.name)
