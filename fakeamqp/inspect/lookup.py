"""Finds virtual hosts, queues and exchanges by name. Errors about missing ones name the nearest match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.inspect.errors import NoSuchExchange, NoSuchQueue, NoSuchVirtualHost, nearest

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["find_exchange", "find_queue", "find_virtual_host", "select_virtual_hosts"]


def find_virtual_host(state: BrokerState, name: str) -> VirtualHost:
    """The virtual host called `name`.

    Raises:
        NoSuchVirtualHost: it does not exist.
    """
    found = state.virtual_hosts.get(name)
    if found is None:
        text = f"there is no virtual host {name!r}{nearest(name, state.virtual_hosts)}"
        raise NoSuchVirtualHost(text + _went(state, "virtual host", "", name))
    return found


def _went(state: BrokerState, kind: str, virtual_host: str, name: str) -> str:
    """A line about the reset that has removed the missing entity; "" if none has.

    Raises:
        BrokerError: the broker was not started, so the entity cannot be there yet.
    """
    state.check_started()
    hint = state.resets.miss(kind, virtual_host, name)
    return hint and f"\n{hint}"


def select_virtual_hosts(state: BrokerState, name: str | None) -> tuple[VirtualHost, ...]:
    """The virtual host called `name`, or (None) all.

    Raises:
        NoSuchVirtualHost: it does not exist.
    """
    return tuple(state.virtual_hosts.values()) if name is None else (find_virtual_host(state, name),)


def find_queue(state: BrokerState, name: str, virtual_host: str = "/") -> Queue:
    """The queue called `name`.

    Raises:
        NoSuchQueue, NoSuchVirtualHost: it does not exist.
    """
    queues = find_virtual_host(state, virtual_host).queues
    queue = queues.get(name)
    if queue is None:
        text = f"there is no queue {name!r} in virtual host {virtual_host!r}{nearest(name, queues)}"
        raise NoSuchQueue(text + _went(state, "queue", virtual_host, name))
    return queue


def find_exchange(state: BrokerState, name: str, virtual_host: str = "/") -> Exchange:
    """The exchange called `name`.

    Raises:
        NoSuchExchange, NoSuchVirtualHost: it does not exist.
    """
    exchanges = find_virtual_host(state, virtual_host).exchanges
    exchange = exchanges.get(name)
    if exchange is None:
        text = f"there is no exchange {name!r} in virtual host {virtual_host!r}{nearest(name, exchanges)}"
        raise NoSuchExchange(text + _went(state, "exchange", virtual_host, name))
    return exchange
