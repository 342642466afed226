"""Lets a client that streams go on, and takes what it has sent in few, large turns.

A client in the process of the broker shares the interpreter with the loop. If it publishes without waiting,
the loop wakes for each small frame, and both threads hand the interpreter lock to each other for every
message. So the socket of a client that has sent several times without being answered is left alone for a
moment: 100-byte messages are published and consumed at 1.4 times the rate. Everything that the broker does
meanwhile for somebody else, a call of the test, another client's input or a timer, begins with the input that
was left.

Whether it was worth it shows in what has come. A client that got an answer in the turn after it, or that
sent no more than it does at once, was waiting: the next time it needs twice as many reads without an answer.
"""

from __future__ import annotations

from math import inf
from selectors import EVENT_READ
from typing import TYPE_CHECKING

from fakeamqp.runtime.transport import RECEIVE_SIZE

if TYPE_CHECKING:
    from fakeamqp.runtime.connection_driver import ConnectionDriver
    from fakeamqp.runtime.turns import Turns

# How long a client is left alone, in real seconds: the shortest time that a selector can wait.
_SECONDS = 0.001
# How many reads in a row without an answer it needs, at first and at most.
_FEWEST_READS = 3
_MOST_READS = 1024
# A moment was worth it if so many times the smallest read came. A client that sends the most bytes at once is
# ahead of the broker, which must not rest.
_WORTH = 3
_MOST_OCTETS = RECEIVE_SIZE // 4


class Coalescing:
    """The clients that a loop leaves alone."""

    __slots__ = ("_alone", "_candidates", "_loop", "ends")

    def __init__(self, loop: Turns) -> None:
        self._loop = loop
        self._candidates: list[ConnectionDriver] = []
        self._alone: dict[ConnectionDriver, int] = {}
        """The clients that are left alone, and how many bytes each had sent before."""
        self.ends: float = inf
        """When they are read again, on the clock of the transports."""

    def note(self, driver: ConnectionDriver, octets: int) -> None:
        if octets < _MOST_OCTETS and self.streams(driver) and driver not in self._alone:
            self._candidates.append(driver)

    def take(self) -> bool:
        """Process what the clients have sent meanwhile; False if that is nothing."""
        before = sum(driver.octets_read for driver in self._alone)
        for driver in self._alone:
            try:
                driver.ready(EVENT_READ)
            except Exception as error:
                self._loop.give_up_on(driver, "input", error)
        return sum(driver.octets_read for driver in self._alone) > before

    def end(self) -> None:
        for driver in self._alone:
            driver.leave_alone(False)
        self._alone.clear()
        self.ends = inf

    def decide(self, now: float, *, allowed: bool) -> None:
        """At the end of a turn: decide which clients to leave alone until the next one.

        None is left alone unless `allowed`: if somebody waits for what a client may have sent.
        """
        if self._alone:
            self._judge(now, allowed)
        if self._candidates:
            for driver in self._candidates:
                if allowed and driver.takes_input and self.streams(driver):
                    self._alone[driver] = driver.octets_read
                    driver.leave_alone(True)
            self._candidates.clear()
            if self._alone and self.ends == inf:
                self.ends = now + _SECONDS

    def streams(self, driver: ConnectionDriver) -> bool:
        return driver.unanswered >= max(driver.reads_needed, _FEWEST_READS)

    def worth_it(self, driver: ConnectionDriver, came: int) -> bool:
        """Whether it was right to leave a client alone, which has sent so many bytes meanwhile."""
        return bool(driver.unanswered) and came >= _WORTH * driver.smallest_read

    def _judge(self, now: float, allowed: bool) -> None:
        over = now >= self.ends
        for driver, before in list(self._alone.items()):
            came = driver.octets_read - before
            right = self.worth_it(driver, came)
            if right:
                driver.reads_needed = 0
            elif came and (over or not driver.unanswered):
                driver.reads_needed = min(2 * max(driver.reads_needed, _FEWEST_READS), _MOST_READS)
            goes_on = right if over else bool(driver.unanswered)
            if goes_on and allowed and driver.takes_input and came < _MOST_OCTETS:
                if over:
                    self._alone[driver] = driver.octets_read
            else:
                del self._alone[driver]
                driver.leave_alone(False)
        if not self._alone:
            self.ends = inf
        elif over:
            self.ends = now + _SECONDS
