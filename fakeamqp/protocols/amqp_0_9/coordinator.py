"""A coordinator of distributed transactions, in the hand of a test: see `Amqp09.coordinator`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.model.transactions import XaOutcome, Xid

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.transactions import Branches
    from fakeamqp.runtime import Engine

__all__ = ["Coordinator", "DistributedTransaction"]

_PREPARED = "prepared"


class DistributedTransaction(NamedTuple):
    """A transaction as it was when somebody looked.

    `state` is in words; `publishes` and `settlements` count what it will do when it is committed.
    """

    identifier: str
    state: str
    publishes: int
    settlements: int


class Coordinator:
    """Completes what clients of AMQP 0-9 have begun with dtx.start, in one virtual host.

    A transaction is known by the identifier that its client has chosen. Whatever is decided about it ends the
    client's work for it: what its channel does from then on counts by itself.
    """

    def __init__(self, engine: Engine, state: BrokerState, virtual_host: str) -> None:
        self._engine = engine
        self._state = state
        self._virtual_host = virtual_host

    def __repr__(self) -> str:
        return f"<Coordinator of virtual host {self._virtual_host!r}: {len(self.transactions)} transactions>"

    @property
    def transactions(self) -> tuple[DistributedTransaction, ...]:
        """Those that are not completed, in the order in which they were started."""
        with self._engine:
            return tuple(
                DistributedTransaction(_text(each.xid), each.state, each.publishes, each.settlements)
                for each in self._branches.views()
                if each.xid == _xid(_text(each.xid))
            )

    def prepare(self, identifier: str) -> bool:
        """Have the broker promise to commit or to roll back, as will be asked, even after a restart.

        Args:
            identifier: as in dtx.start.

        Returns:
            False where the transaction can only be rolled back: its channel was lost, or it took too long.
            One that has nothing to do is over.

        Raises:
            NotFound: there is no such transaction.
            IllegalState: it is prepared already.
        """
        with self._engine:
            return self._branches.prepare(_xid(identifier)) in (XaOutcome.OK, XaOutcome.READ_ONLY)

    def commit(self, identifier: str) -> bool:
        """Do the work, whether it was prepared or not.

        Args:
            identifier: as in dtx.start.

        Returns:
            False where the transaction was rolled back instead, as it had to be.

        Raises:
            NotFound: there is no such transaction.
        """
        xid = _xid(identifier)
        with self._engine:
            branches = self._branches
            prepared = any(each.xid == xid and each.state == _PREPARED for each in branches.views())
            return branches.commit(xid, one_phase=not prepared) is XaOutcome.OK

    def rollback(self, identifier: str) -> None:
        """Drop what was published, and give back what was acknowledged.

        Args:
            identifier: as in dtx.start.

        Raises:
            NotFound: there is no such transaction.
        """
        with self._engine:
            self._branches.rollback(_xid(identifier))

    @property
    def _branches(self) -> Branches:
        return self._state.virtual_host(self._virtual_host).branches


def _xid(identifier: str) -> Xid:
    return Xid(0, identifier.encode("utf-8", "surrogateescape"), b"")


def _text(xid: Xid) -> str:
    return xid.global_id.decode("utf-8", "surrogateescape")
