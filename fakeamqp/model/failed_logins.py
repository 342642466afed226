"""Failed logins, counted by the address of the client. Addresses with too many of them are blocked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakeamqp.model.errors import AuthenticationFailed

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.timers import TimeSource

__all__ = ["FailedLogins"]

_MOST_ADDRESSES = 10_000


@dataclass
class _Address:
    """The failures of one address. It is blocked once `count` has reached the limit, until `ends`."""

    count: int
    ends: float


class FailedLogins:
    """The failed logins of one broker (security/log-and-block).

    An address is blocked for `Personality.login_block_time` seconds with the failure that makes
    `Personality.most_failed_logins`. A successful login, or this time without another failure, sets its count
    to zero. Attempts of a blocked address fail, and do not extend the time. The latest 10 000 addresses are
    counted.
    """

    __slots__ = ("_addresses", "_clock", "_most", "_seconds")

    def __init__(self, clock: TimeSource, personality: Personality) -> None:
        self._clock = clock
        self._most = personality.most_failed_logins
        self._seconds = personality.login_block_time
        self._addresses: dict[str, _Address] = {}

    def check(self, host: str) -> None:
        """Refuse a login from an address that is blocked.

        Raises:
            AuthenticationFailed: it is.
        """
        found = self._current(host)
        if found is not None and found.count >= self._most:
            remaining = found.ends - self._clock.now()
            raise AuthenticationFailed(
                f"{host or 'the address'} is blocked for another {remaining:g} s after {found.count} failed "
                "logins"
            )

    def failed(self, host: str) -> None:
        """Count a failed login, unless the address is blocked."""
        if self._most <= 0:
            return
        found = self._current(host)
        if found is not None and found.count >= self._most:
            return
        count = 1 if found is None else found.count + 1
        self._addresses.pop(host, None)
        if len(self._addresses) >= _MOST_ADDRESSES:
            del self._addresses[next(iter(self._addresses))]
        self._addresses[host] = _Address(count, self._clock.now() + self._seconds)
        if count == self._most:
            import logging  # On demand, since importing `Broker` must be fast.

            logging.getLogger("fakeamqp").warning(
                "%s is blocked for %g s after %d failed logins", host or "an address", self._seconds, count
            )

    def succeeded(self, host: str) -> None:
        """Forget the failures of an address."""
        self._addresses.pop(host, None)

    def clear(self) -> None:
        """Forget all failures."""
        self._addresses.clear()

    def _current(self, host: str) -> _Address | None:
        """The failures of an address that still count."""
        found = self._addresses.get(host)
        if found is not None and self._clock.now() >= found.ends:
            del self._addresses[host]
            return None
        return found
