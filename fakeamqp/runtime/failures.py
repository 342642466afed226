"""The bugs of the broker that came to light."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["BrokerFailure", "Failures"]


class Failures(list["BrokerFailure"]):
    """Exceptions caused by bugs of the broker, in order. Empty, whatever peers do."""

    _told = 0

    def untold(self) -> list[BrokerFailure]:
        """Those recorded since the last call."""
        begin, self._told = self._told, len(self)
        return self[begin:]

    def record(self, activity: str, error: BaseException) -> None:
        """Keep and log a bug."""
        import logging  # Imported only for bugs.

        self.append(BrokerFailure(activity, error))
        log = logging.getLogger("fakeamqp.runtime")
        log.error("bug in fakeamqp: %s: %r", activity, error, exc_info=error)


class BrokerFailure(NamedTuple):
    """An exception caused by a bug of the broker. Peers cannot cause one, whatever they send."""

    activity: str
    error: BaseException

    def __str__(self) -> str:
        return f"{self.activity}: {self.error!r}"
