"""A coordinator of distributed transactions that a test controls: see `Amqp09.coordinator`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.model.errors import IllegalState
from fakeamqp.model.transactions import XaOutcome, Xid

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.transactions import Branches
    from fakeamqp.runtime.engine import Engine

__all__ = ["Coordinator", "DistributedTransaction"]

_PREPARED = "prepared"


class DistributedTransaction(NamedTuple):
    """One distributed transaction when it was read.

    Attributes:
        identifier: as in dtx.start.
        state: such as "active" or "prepared".
        publishes: the number of messages that a commit publishes.
        settlements: the number of messages that a commit settles.
    """

    identifier: str
    state: str
    publishes: int
    settlements: int


class Coordinator:
    """Completes the distributed transactions that clients of AMQP 0-9 start with dtx.start in a virtual host.

    The client chooses the identifier of a transaction. After a decision the transaction is over for the
    client: later work of its channel is outside of it.
    """

    def __init__(self, engine: Engine, state: BrokerState, virtual_host: str) -> None:
        self._engine = engine
        self._state = state
        self._virtual_host = virtual_host

    def __repr__(self) -> str:
        return f"<Coordinator of virtual host {self._virtual_host!r}: {len(self.transactions)} transactions>"

    @property
    def transactions(self) -> tuple[DistributedTransaction, ...]:
        """The transactions that are not completed, in the order in which they were started."""
        with self._engine:
            return tuple(
                DistributedTransaction(_text(each.xid), each.state, each.publishes, each.settlements)
                for each in self._branches.views()
                if each.xid == _xid(_text(each.xid))
            )

    def prepare(self, identifier: str) -> None:
        """Prepare a transaction: the broker guarantees that it can commit or roll back, even after a restart.

        A transaction without work is completed.

        Args:
            identifier: as in dtx.start.

        Raises:
            NotFound: the transaction does not exist.
            IllegalState: it is already prepared; or it can only be rolled back, since its channel was lost or
                it has timed out.
        """
        with self._engine:
            _check(identifier, self._branches.prepare(_xid(identifier)))

    def commit(self, identifier: str) -> None:
        """Commit a transaction, prepared or not.

        Args:
            identifier: as in dtx.start.

        Raises:
            NotFound: the transaction does not exist.
            IllegalState: it had to be rolled back instead.
        """
        xid = _xid(identifier)
        with self._engine:
            branches = self._branches
            prepared = any(each.xid == xid and each.state == _PREPARED for each in branches.views())
            _check(identifier, branches.commit(xid, one_phase=not prepared))

    def rollback(self, identifier: str) -> None:
        """Roll back a transaction: drop its publishes and undo its settlements.

        Args:
            identifier: as in dtx.start.

        Raises:
            NotFound: the transaction does not exist.
        """
        with self._engine:
            self._branches.rollback(_xid(identifier))

    @property
    def _branches(self) -> Branches:
        return self._state.virtual_host(self._virtual_host).branches


def _check(identifier: str, outcome: XaOutcome) -> None:
    if outcome not in (XaOutcome.OK, XaOutcome.READ_ONLY):
        raise IllegalState(
            f"transaction {identifier!r} is rolled back ({outcome.value}): its channel was lost, or it has "
            "timed out"
        )


def _xid(identifier: str) -> Xid:
    return Xid(0, identifier.encode("utf-8", "surrogateescape"), b"")


def _text(xid: Xid) -> str:
    return xid.global_id.decode("utf-8", "surrogateescape")
