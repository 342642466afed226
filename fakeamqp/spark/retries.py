"""How long source and sink try to get a lost connection back. One policy for all of them.

Only what may pass by itself is tried again: a connection that ended, and a broker that cannot be reached. A
refused login and a certificate that is not trusted are not, and neither is what the broker closes a channel
or a connection for: it would do so again.
"""

from __future__ import annotations

import time

from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, LoginRefused, UnreadableAnswer

__all__ = ["LONGEST_PAUSE", "Retries"]

_FIRST_PAUSE = 0.05
#: Seconds between two attempts, at most.
LONGEST_PAUSE = 2.0


class Retries:
    """The attempts since something worked the last time.

    Args:
        timeout: the seconds to try again; the last attempt is at their end.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self.succeeded()

    def succeeded(self) -> None:
        """Something worked: the next failure is the first one again."""
        self._since: float | None = None
        self._pause = _FIRST_PAUSE

    def pause(self, error: ConnectionLost | BrokerUnreachable) -> float:
        """The seconds to wait after a failure, before the next attempt.

        Raises:
            ConnectionLost, BrokerUnreachable: the time is over, or another attempt would fail as well.
        """
        if isinstance(error, (LoginRefused, UnreadableAnswer)):
            raise error
        now = time.monotonic()
        if self._since is None:
            self._since = now
        ends = self._since + self._timeout
        if now >= ends:
            raise type(error)(f"{error} (tried again for {now - self._since:.1f} s)") from None
        pause = min(self._pause, ends - now)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return pause
