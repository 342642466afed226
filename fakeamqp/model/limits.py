"""Limits that an operator sets on virtual hosts and users, and bounds that hold for all clients.

A limit of 0 allows nothing, a negative one means no limit (RabbitMQ: documented). Setting a limit does not
affect what already exists.

What RabbitMQ bounds itself is a choice of the `Personality`. `Bounds` hold in all personalities: they are far
above what tests need, and keep a client that goes astray from exhausting the machine.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.errors import FakeAMQPError
from fakeamqp.model.errors import NotAllowed, PreconditionFailed, ResourceError
from fakeamqp.model.names import NODE
from fakeamqp.model.policies import Check, ParameterError, checked, failed, hint, mapping, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from fakeamqp.model.access import User
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.virtual_host import VirtualHost

_MIB = 1024 * 1024

SHARE = 16
"""Each history, and the trace, shrinks to this part of the memory limit before publishers are blocked."""


class BoundsError(FakeAMQPError):
    """A bound is not a whole number above 0."""

    __module__ = "fakeamqp.errors"


@dataclass(frozen=True)
class Bounds:
    """What peers can make the broker keep. Each bound is a whole number above 0.

    Attributes:
        outbox_deliveries: bytes that wait for a client, above which it gets no further deliveries.
        outbox_input: bytes that wait for a client, from which on the broker handles no input of it.
        history_octets: bytes of messages, headers included, that each of the histories keeps.
        trace_octets: bytes that the trace keeps of long headers, long arguments and messages.
        pending_handshakes: connections that have not logged in; beyond it the oldest is closed.
        consumers_per_channel: consumers of one channel or session.
        bindings_per_virtual_host: bindings of one virtual host.
        idle_frames: heartbeats and empty frames in a row, with nothing between them, from one client.
        detached_sessions: sessions of AMQP 0-10 without a connection; beyond it the one that has been
            detached longest ends.
        http_connections: connections of the HTTP port, and not more than a quarter of the descriptors that
            the process may have; beyond it, the connection ends that has waited longest for its client.
    """

    outbox_deliveries: int = _MIB
    outbox_input: int = 8 * _MIB
    history_octets: int = 64 * _MIB
    trace_octets: int = 32 * _MIB
    pending_handshakes: int = 10_000
    consumers_per_channel: int = 100_000
    bindings_per_virtual_host: int = 1_000_000
    idle_frames: int = 100_000
    detached_sessions: int = 1_000
    http_connections: int = 100

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise BoundsError(f"bound {each.name} must be a whole number above 0, not {value!r}")


DEFAULT_BOUNDS = Bounds()


_REFUSALS: dict[str, type[NotAllowed | PreconditionFailed | ResourceError]] = {
    each.condition: each for each in (NotAllowed, PreconditionFailed, ResourceError)
}


class LimitsError(ParameterError):
    """The name of a limit is misspelled, or a limit is not a whole number."""

    __module__ = "fakeamqp.errors"


@dataclass(frozen=True)
class _Limits:
    """Limits by name; None where none was set."""

    _word: ClassVar[str]
    """The term that RabbitMQ's texts use."""

    @classmethod
    def read(cls, where: str, value: Any) -> Self:
        """Limits as in RabbitMQ's definitions: a mapping such as `{"max-queues": 10}`, or a list of pairs.

        `where` is the virtual host or user for the text of a LimitsError, which is about a misspelled name of
        a limit, or a limit that is not a whole number.
        """
        names = {each.name.replace("_", "-"): each.name for each in fields(cls)}
        checks: dict[str, tuple[Check, bool]] = dict.fromkeys(names, (whole_number, False))
        wrong, found = checked(cls._word, {} if value is None else mapping(value), checks)
        if wrong:
            unknown = sorted(set(found) - set(names))
            near = hint(unknown[0], names) if unknown else ""
            raise LimitsError(f"limits of {where}: {'; '.join(wrong)}{near}", failed(wrong))
        return cls(**{names[name]: limit for name, limit in found.items()})

    def changed(self, where: str, **limits: int | None) -> Self:
        """A copy with the given limits replaced; None leaves a limit unchanged. Raises LimitsError."""
        given = {name: limit for name, limit in limits.items() if limit is not None}
        self.read(where, {name.replace("_", "-"): limit for name, limit in given.items()})
        return replace(self, **given)

    def value(self) -> dict[str, int]:
        """The limits that are set, as RabbitMQ exports them."""
        named = {each.name.replace("_", "-"): getattr(self, each.name) for each in fields(self)}
        return {name: limit for name, limit in named.items() if limit is not None}


@dataclass(frozen=True)
class VirtualHostLimits(_Limits):
    """How many connections and queues a virtual host may have."""

    _word: ClassVar[str] = "limits"
    max_connections: int | None = None
    max_queues: int | None = None


@dataclass(frozen=True)
class UserLimits(_Limits):
    """How many connections a user may have, and how many channels on all of these together."""

    _word: ClassVar[str] = "user-limits"
    max_connections: int | None = None
    max_channels: int | None = None


def check_connection_limits(state: BrokerState, virtual_host: VirtualHost, user: User) -> None:
    """Refuse a connection beyond the limits of the virtual host or the user (connection.open/vhost-limits).

    By personality it raises NotAllowed or ResourceError.
    """
    refusal = _REFUSALS[state.personality.connection_limit_condition]
    limit = virtual_host.limits.max_connections
    present = chain(state.connections, state.leaving)
    if _reached(limit, (each.virtual_host_name == virtual_host.name for each in present)):
        raise refusal(
            f"access to vhost '{virtual_host.name}' refused for user '{user.name}': "
            f"connection limit ({limit}) is reached",
            ends_connection=True,
        )
    limit = user.limits.max_connections
    opened = (each for each in chain(state.connections, state.leaving) if each.virtual_host_name is not None)
    if _reached(limit, (each.user_name == user.name for each in opened)):
        raise refusal(
            f"connection refused for user '{user.name}': user connection limit ({limit}) is reached",
            ends_connection=True,
        )


def check_channel_limit(state: BrokerState, user: User) -> None:
    """Refuse a channel beyond the user's limit. The channels of all the user's connections are counted.

    By personality it raises NotAllowed or ResourceError.
    """
    limit = user.limits.max_channels
    theirs = (each for each in state.connections if each.user_name == user.name)
    if _reached(limit, (len(each.open_channels) for each in theirs)):
        text = state.personality.channel_limit_text.format(user=user.name, node=NODE, limit=limit)
        raise _REFUSALS[state.personality.connection_limit_condition](text, ends_connection=True)


def check_queue_limit(virtual_host: VirtualHost, name: str) -> None:
    """Refuse a queue beyond the virtual host's limit (reply-code/resource-error). All its queues are counted.

    By personality it raises PreconditionFailed or ResourceError.
    """
    limit = virtual_host.limits.max_queues
    if _reached(limit, (len(virtual_host.queues),)):
        raise _REFUSALS[virtual_host.state.personality.queue_limit_condition](
            f"cannot declare queue '{name}': queue limit in vhost '{virtual_host.name}' ({limit}) is reached"
        )


def check_consumer_bound(state: BrokerState, count: int) -> None:
    """NotAllowed for a consumer where the channel or session has `count` already, and that is the bound.

    RabbitMQ has the same bound, without a default, and closes the connection (consumer_max_per_channel:
    measured on 4.3.6).
    """
    most = state.bounds.consumers_per_channel
    if count >= most:
        raise NotAllowed(f"reached maximum ({most}) of consumers per channel", ends_connection=True)


def check_binding_bound(virtual_host: VirtualHost) -> None:
    """Refuse a binding beyond the bound of a virtual host; the error is that of `check_queue_limit`."""
    most = virtual_host.state.bounds.bindings_per_virtual_host
    if virtual_host.bindings.count >= most:
        refusal = _REFUSALS[virtual_host.state.personality.queue_limit_condition]
        raise refusal(f"cannot bind: binding limit in vhost '{virtual_host.name}' ({most}) is reached")


def _reached(limit: int | None, counts: Iterable[int]) -> bool:
    """Whether a limit is reached. Without one nothing is counted: n logins would cost n squared."""
    return limit is not None and 0 <= limit <= sum(counts)
