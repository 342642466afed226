"""What a request does to queues and exchanges: as a client of the user would, with the same permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.management.errors import absent

if TYPE_CHECKING:
    from fakeamqp.management.resource import ApiCall
    from fakeamqp.model.access import Action, User
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.state import BrokerState

DEFAULT_EXCHANGE = "amq.default"
"""The name of the default exchange in paths."""


class _Owner:
    """Whom requests act as where an owner decides: no connection, so exclusive queues are locked."""

    def __repr__(self) -> str:
        return "<the management API>"


OWNER = _Owner()


def user_of(call: ApiCall, state: BrokerState) -> User:
    """The account of the user that asks."""
    return state.access.known(call.visitor.name)


def authorise(call: ApiCall, state: BrokerState, action: Action, name: str) -> None:
    """Check the user's permission for a queue or an exchange.

    Raises:
        AccessRefused: the pattern does not match; answers do not have the text of this error.
    """
    state.access.check(user_of(call, state), call.names["vhost"], action, "resource", name)


def queue_of(call: ApiCall, state: BrokerState, name: str = "name") -> Queue:
    """The queue of the path.

    Raises:
        Refused: 404: it does not exist.
    """
    queue = call.virtual_host(state).queues.get(call.names[name])
    if queue is None:
        raise absent()
    return queue


def exchange_name(name: str) -> str:
    """The name of an exchange in a path."""
    return "" if name == DEFAULT_EXCHANGE else name


def exchange_of(call: ApiCall, state: BrokerState, name: str = "name") -> Exchange:
    """The exchange of the path.

    Raises:
        Refused: 404: it does not exist.
    """
    exchange = call.virtual_host(state).exchanges.get(exchange_name(call.names[name]))
    if exchange is None:
        raise absent()
    return exchange
