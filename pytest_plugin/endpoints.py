"""The endpoints of a test: the brokers and proxies that the fixtures have created for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pytest

from . import options

if TYPE_CHECKING:
    from fakeamqp import Broker, Proxy
    from fakeamqp.trace import Trace
    from fakeamqp.trace.recorder import RecorderMark

    AnyEndpoint: TypeAlias = Broker | Proxy

__all__ = ["OF_THE_SESSION", "brokers", "forget", "named", "of", "of_clients", "remember", "trace"]

OF_THE_SESSION = ("amqp_broker_session", "amqp_url_session")
"""The fixtures of the broker of the session; a fixture of that scope reaches it by one of them."""

_ENDPOINTS: pytest.StashKey[list[AnyEndpoint]] = pytest.StashKey()
_SINCE: pytest.StashKey[dict[int, RecorderMark]] = pytest.StashKey()


def of_clients(request: pytest.FixtureRequest) -> AnyEndpoint:
    """The endpoint that clients of the test connect to: its proxy if it takes one, or its broker."""
    name = "amqp_proxy" if options.takes_proxy(request.node) else "amqp_broker"
    endpoint: AnyEndpoint = request.getfixturevalue(name)
    return endpoint


def remember(item: pytest.Item, endpoint: AnyEndpoint, *, since: RecorderMark | None = None) -> None:
    """Note that `item` uses `endpoint`; what came before `since` belongs to earlier tests."""
    item.stash.setdefault(_ENDPOINTS, []).append(endpoint)
    if since is not None:
        item.stash.setdefault(_SINCE, {})[id(endpoint)] = since


def trace(item: pytest.Item, endpoint: AnyEndpoint) -> Trace:
    """What happened on an endpoint of `item` during `item`. It must have a recorder."""
    recorder = endpoint._recorder
    assert recorder is not None
    with endpoint._engine:
        return recorder.trace(item.stash.get(_SINCE, {}).get(id(endpoint)))


def of(item: pytest.Item) -> list[AnyEndpoint]:
    """The endpoints of `item`, in the order they were started."""
    return item.stash.get(_ENDPOINTS, [])


def brokers(item: pytest.Item) -> list[Broker]:
    """The endpoints of `item` that are brokers."""
    if not of(item):
        return []
    from fakeamqp import Broker

    return [each for each in of(item) if isinstance(each, Broker)]


def forget(item: pytest.Item) -> None:
    """Drop the endpoints of `item`, since pytest keeps items until the end of the run."""
    if _ENDPOINTS in item.stash:
        del item.stash[_ENDPOINTS]
    if _SINCE in item.stash:
        del item.stash[_SINCE]


def named(endpoint: AnyEndpoint) -> str:
    """What reports call an endpoint: its address, since a URL would contain the password."""
    from fakeamqp import Proxy

    address = f"{endpoint.host}:{endpoint.port}"
    return f"the proxy on {address}" if isinstance(endpoint, Proxy) else address
