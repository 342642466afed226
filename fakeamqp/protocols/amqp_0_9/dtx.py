"""Class dtx: distributed transactions, which a coordinator completes, not the client (dtx/model).

After dtx.start the channel's publishes and settlements belong to a transaction branch. Its coordinator is
either a 0-10 client, or the test (`Amqp09.coordinator`). In 0-10 the branch has an xid with format 0, the
identifier as global id and an empty branch id. A channel belongs to one branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.errors import NotAllowed, PreconditionFailed, SyntaxFault
from fakeamqp.model.transactions import Xid
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.states import ChannelState
from fakeamqp.protocols.base.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

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
    """The link between a channel and its branch. See `Amqp09Channel.class_state`."""

    def __init__(self, channel: Amqp09Channel) -> None:
        self._channel = channel

    def over(self) -> None:
        """The coordinator completed or prepared the branch; further operations take effect at once."""
        self._channel.transaction = None

    def released(self) -> None:
        """Leave the branch, because the channel is closing.

        If the client closed the channel, its work is complete. Otherwise its work has failed.
        """
        channel = self._channel
        if channel.mode != "dtx":
            return
        branches = channel.virtual_host.branches
        if channel.state is ChannelState.CLOSED and channel.connection.state is ConnectionState.OPEN:
            branches.delist(channel)
        else:
            branches.leave(channel)
        channel.transaction = None


def select(channel: Amqp09Channel, method: Method) -> None:
    """Switch the channel to dtx mode (dtx.select/sets-mode), unless it is in tx or confirm mode."""
    if channel.mode not in (None, "dtx"):
        raise PreconditionFailed(f"the channel is in {channel.mode} mode")
    channel.mode = "dtx"
    channel.send(m.DtxSelectOk())


def start(channel: Amqp09Channel, method: m.DtxStart) -> None:
    """Start a branch (dtx.start/identifier-not-null, dtx.start/first-on-channel, dtx.start-ok/failure)."""
    if not method.dtx_identifier:
        raise SyntaxFault("the identifier of a distributed transaction is empty")
    if channel.mode != "dtx":
        raise PreconditionFailed("the channel is not in dtx mode; send dtx.select first")
    if channel.has_worked or channel.transaction is not None:
        raise PreconditionFailed("the channel has published or consumed already, or started a transaction")
    branches = channel.virtual_host.branches
    xid = Xid(0, method.dtx_identifier.encode("utf-8", "surrogateescape"), b"")
    try:
        branches.enlist(channel, xid, channel.class_state(Enlistment).over, user=channel.user)
    except NotAllowed as problem:
        raise PreconditionFailed(problem.text) from problem
    channel.transaction = branches.working(channel)
    channel.send(m.DtxStartOk())
