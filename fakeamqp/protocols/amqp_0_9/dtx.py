"""Class dtx: distributed transactions, which somebody else than the client completes (dtx/model).

After start the channel's publishes and settlements are the work of a branch. Its coordinator is whoever knows
the identifier: a client of 0-10, to which it is the xid of format 0 with the identifier as global id and no
branch id, or the program that has the broker (`Amqp09.coordinator`). A channel takes part in one branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.errors import NotAllowed, PreconditionFailed, SyntaxFault
from fakeamqp.model.transactions import Xid
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.common.connection_states import ConnectionState
from fakeamqp.protocols.framed.states import ChannelState

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel

__all__ = ["HANDLERS", "WORK", "Enlistment"]

WORK = frozenset(
    method.INDEX
    for method in (
        m.BasicPublish,
        m.BasicConsume,
        m.BasicGet,
        m.FilePublish,
        m.FileConsume,
        m.StreamPublish,
        m.StreamConsume,
        m.MessageTransfer,
        m.MessageConsume,
        m.MessageGet,
    )
)
"""The methods that publish or consume."""


class Enlistment:
    """A channel's part in a branch. See `Amqp09Channel.class_state`."""

    def __init__(self, channel: Amqp09Channel) -> None:
        self._channel = channel

    def start(self, identifier: str) -> None:
        """Have all that the channel does belong to a new branch.

        Raises:
            PreconditionFailed: there is a branch of this name already (dtx.start-ok/failure).
        """
        channel = self._channel
        branches = channel.virtual_host.branches
        xid = Xid(0, identifier.encode("utf-8", "surrogateescape"), b"")
        try:
            branches.enlist(channel, xid, self._over)
        except NotAllowed as problem:
            raise PreconditionFailed(problem.text) from problem
        channel.transaction = branches.working(channel)

    def _over(self) -> None:
        """Somebody has decided about the branch: what comes now counts by itself."""
        self._channel.transaction = None

    def released(self) -> None:
        """The channel is over. If the client has closed it, its work is done, and otherwise has failed."""
        channel = self._channel
        if channel.mode != "dtx":
            return
        branches = channel.virtual_host.branches
        closed = channel.state is ChannelState.CLOSED and channel.connection.state is ConnectionState.OPEN
        if closed:
            branches.delist(channel)
        else:
            branches.leave(channel)
        channel.transaction = None


def select(channel: Amqp09Channel, method: m.DtxSelect) -> None:
    """Let the channel take part in a distributed transaction (dtx.select/sets-mode).

    Raises:
        PreconditionFailed: it has transactions of its own.
    """
    if channel.mode == "tx":
        raise PreconditionFailed("the channel is in tx mode")
    channel.mode = "dtx"
    channel.send(m.DtxSelectOk())


def start(channel: Amqp09Channel, method: m.DtxStart) -> None:
    """Begin a branch.

    Raises:
        SyntaxFault: the identifier is empty (dtx.start/identifier-not-null).
        PreconditionFailed: the channel is not selected, has published or consumed already
            (dtx.start/first-on-channel), or the identifier is in use.
    """
    if not method.dtx_identifier:
        raise SyntaxFault("the identifier of a distributed transaction is empty")
    if channel.mode != "dtx":
        raise PreconditionFailed("the channel is not in dtx mode; dtx.select comes first")
    if channel.has_worked or channel.transaction is not None:
        raise PreconditionFailed("the channel has published or consumed already, or started a transaction")
    channel.class_state(Enlistment).start(method.dtx_identifier)
    channel.send(m.DtxStartOk())


HANDLERS = {m.DtxSelect: select, m.DtxStart: start}
