"""A fault that redirects clients to another broker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.handle import Handle, Handles

if TYPE_CHECKING:
    from fakeamqp.faults.context import BrokerContext

__all__ = ["Redirection"]

_LONGEST = 255


class Redirection(Handle):
    """Redirects clients that open a connection, if their protocol has connection.redirect.

    Clients that insist are served here. While several redirections last, the latest counts. Each redirected
    client is a hit.

    Raises:
        FaultError: the name of a broker does not fit a short string.
    """

    _context: BrokerContext

    def __init__(
        self, context: BrokerContext, target: str, known_hosts: Iterable[str], others: Handles
    ) -> None:
        super().__init__(context)
        self.target = target
        self.known_hosts: tuple[str, ...] = (
            (known_hosts,) if isinstance(known_hosts, str) else tuple(known_hosts)
        )
        for name in (target, *self.known_hosts):
            if not isinstance(name, str) or not 0 < len(name.encode("utf-8", "replace")) <= _LONGEST:
                raise FaultError(f'a broker is named by a str such as "other.example:5672", not {name!r}')
        self._others = others

    def begin(self) -> None:
        """Redirect clients from now on."""
        self._context.redirect(self.target, self.known_hosts, self._count_hit)

    @property
    def sentence(self) -> str:
        return f"clients that open a connection are redirected to {self.target}"

    def _withdraw(self) -> None:
        others = (each for each in self._others.in_force if each is not self)
        lasting = [each for each in others if isinstance(each, Redirection)]
        if lasting:
            lasting[-1].begin()
        else:
            self._context.redirect(None)
