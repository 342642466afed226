"""A coordinator of distributed transactions that a test controls: see `Amqp09.coordinator`."""

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
    """A snapshot of a transaction.

    `state` is a text; `publishes` and `settlements` count the operations that a commit carries out.
    """

    identifier: str
    state: str
    publishes: int
    settlements: int


class Coordinator:
    """Completes the transactions that clients of AMQP 0-9 began with dtx.start, in one virtual host.

    The identifier that the client chose identifies the transaction. After prepare, commit or rollback the
    client's channel is not part of the transaction any more: its further operations take effect at once.
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

    def prepare(self, identifier: str) -> bool:
        """Prepare the transaction, so that it can be committed or rolled back even after a restart.

        A transaction without operations is completed instead.

        Args:
            identifier: as in dtx.start.

        Returns:
            False if the transaction can only be rolled back: its channel was lost, or it timed out.

        Raises:
            NotFound: the transaction does not exist.
            IllegalState: it is prepared already.
        """
        with self._engine:
            return self._branches.prepare(_xid(identifier)) in (XaOutcome.OK, XaOutcome.READ_ONLY)

    def commit(self, identifier: str) -> bool:
        """Commit the transaction, prepared or not.

        Args:
            identifier: as in dtx.start.

        Returns:
            False if the transaction could only be rolled back, and was.

        Raises:
            NotFound: the transaction does not exist.
        """
        xid = _xid(identifier)
        with self._engine:
            branches = self._branches
            prepared = any(each.xid == xid and each.state == _PREPARED for each in branches.views())
            return branches.commit(xid, one_phase=not prepared) is XaOutcome.OK

    def rollback(self, identifier: str) -> None:
        """Roll back: drop the published messages, and requeue the acknowledged ones.

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


def _xid(identifier: str) -> Xid:
    return Xid(0, identifier.encode("utf-8", "surrogateescape"), b"")


def _text(xid: Xid) -> str:
    return xid.global_id.decode("utf-8", "surrogateescape")
