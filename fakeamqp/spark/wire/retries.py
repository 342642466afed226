"""How long source and sink try to connect again. All of them follow the same policy.

They try again after the end of a connection, and while no broker can be reached. They do not try again after
a refused login, a certificate that is not trusted, or an answer that cannot be read: another attempt would
fail in the same way.
"""

from __future__ import annotations

import time

from fakeamqp.spark.errors import (
    BrokerUnreachable,
    ConnectionLost,
    LoginRefused,
    QueueRefused,
    UnreadableAnswer,
)

_FIRST_PAUSE = 0.05
#: Seconds between two attempts, at most.
LONGEST_PAUSE = 2.0


class RetryBudget:
    """The attempts since the last success.

    Args:
        timeout: the seconds to try again; the last attempt is at their end.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self.succeeded()

    def succeeded(self) -> None:
        """Note a success: the next failure counts as the first one."""
        self._since: float | None = None
        self._pause = _FIRST_PAUSE

    def pause(self, error: ConnectionLost | BrokerUnreachable | QueueRefused) -> float:
        """The seconds to wait after a failure, before the next attempt.

        Raises:
            ConnectionLost, BrokerUnreachable, QueueRefused: the time is over, or another attempt would fail
                as well.
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
