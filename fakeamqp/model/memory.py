"""The memory that messages take in one broker, and the alarm while they take too much.

Theory of operation. Whatever stores a message asks `Memory.hold` first, which charges the message to the
broker and leaves the `Charge` with it. Copies of a message share its charge, as they share its body. The
charge ends with its last holder, wherever that is: a queue, a client that has not settled it, a transaction,
a history, the trace, or a test. So nothing has to be discharged, and nothing can be forgotten. A message that
is handed to a consumer without acknowledgement at once is stored nowhere and costs nothing.

`settle` compares the sum with the limit. It runs after each piece of input of a connection, and at the end of
every turn. Above the limit the histories and the trace give way first, down to their shares; if that is not
enough, the alarm blocks publishers (`BrokerState.block`) until the sum is below the limit by a margin.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from fakeamqp.model.limits import SHARE

if TYPE_CHECKING:
    from fakeamqp.model.history import History
    from fakeamqp.model.messages.message import Child, Message
    from fakeamqp.model.queues.waiting import QueuedMessage
    from fakeamqp.model.state import BrokerState

LONGEST_REASON = 255
"""Bytes of a reason, which is sent as a short string."""
_LOW = "low on "
_AND = " & "


def joint_reason(reasons: Iterable[str]) -> str | None:
    """The reason for which publishers are blocked while these alarms stand; None while none does.

    It names the resources of all, "low on disk & memory", as RabbitMQ does (measured on 3.10.8, 4.0.5 and
    4.3.6). Where a reason has another form, it is the last one.
    """
    known = list(dict.fromkeys(reasons))
    if not known:
        return None
    if all(reason.startswith(_LOW) for reason in known):
        resources = {resource for reason in known for resource in reason[len(_LOW) :].split(_AND)}
        joint = _LOW + _AND.join(sorted(resources))
        if len(joint.encode()) <= LONGEST_REASON:
            return joint
    return known[-1]


REASON = "low on memory"
"""What clients are told (RabbitMQ: measured on 3.10.8, 4.0.5 and 4.3.6)."""
MESSAGE = 512
"""Bytes that each message counts beside its content: its objects, and its place in one queue."""
ENTRY = 256
"""Bytes that its place in each further queue counts."""
HEADERS = 3
"""How many bytes each byte of the properties counts: they are kept as received, and decoded."""
_new = object.__new__
_MARGIN = 32
"""The alarm ends once this part of the limit is free."""
_DEFAULT = 1024 * 1024 * 1024
_PART_OF_MACHINE = 0.4
"""The part of the machine's memory that RabbitMQ uses before it raises the alarm (documented)."""


class TraceSize(Protocol):
    """What the memory needs of the trace's recorder."""

    @property
    def most(self) -> int:
        """More than `size` can be; asking costs nothing."""

    def size(self) -> int:
        """About how many bytes the trace keeps, without the messages that are charged."""

    def shrink(self, octets: int) -> None:
        """Drop the oldest events, until the rest has at most this many bytes."""


class Account:
    """A sum of bytes."""

    __slots__ = ("octets",)

    def __init__(self) -> None:
        self.octets: int = 0


class Charge:
    """A number of bytes on an account, for as long as this object lives."""

    __slots__ = ("account", "octets")

    def __init__(self, account: Account, octets: int) -> None:
        self.account: Account = account
        self.octets: int = octets
        account.octets += octets

    def change(self, octets: int) -> None:
        """Make it another number of bytes."""
        self.account.octets += octets - self.octets
        self.octets = octets

    # A view of a message that a test drops may end the last charge in any thread; CPython subtracts at once.
    def __del__(self) -> None:
        self.account.octets -= self.octets


class Memory:
    """The accounts of one broker, and its memory alarm. Above the limit, in bytes, publishers are blocked."""

    def __init__(self, state: BrokerState, limit: int | None) -> None:
        self._state = state
        self.limit = limit
        self.messages: Account = Account()
        """Messages that are stored anywhere."""
        self.unfinished: Account = Account()
        """Contents of which a part has come."""
        self.connections: Account = Account()
        """Bytes that wait for clients to take them, and incomplete frames of clients."""
        self._trace: TraceSize | None = None
        self._near = 0 if limit is None else limit
        """Charged bytes below which the limit cannot be exceeded, whatever the trace takes."""
        self.alarm: bool = False
        """Whether the alarm is raised."""
        self._settling = False
        self._spread: Message | None = None
        self._places = Charge(self.messages, 0)
        """The charge for the further places of the message `_spread`, which is being routed."""

    @property
    def trace(self) -> TraceSize | None:
        """The recorder of the trace, if there is one."""
        return self._trace

    @trace.setter
    def trace(self, trace: TraceSize | None) -> None:
        self._trace = trace
        if self.limit is not None:
            self._near = self.limit - (0 if trace is None else trace.most)

    @property
    def total(self) -> int:
        """All bytes that are charged, and those of the trace."""
        trace = 0 if self._trace is None else self._trace.size()
        return self.messages.octets + self.unfinished.octets + self.connections.octets + trace

    # --- charging -------------------------------------------------------------------------------------

    def hold(self, message: Message) -> Charge:
        """Charge a message that is about to be stored, unless it is charged."""
        charge = message.charge
        if charge is None:
            octets = MESSAGE + len(message.body) + HEADERS * len(message.properties_bytes)
            if message.children or not message.properties_bytes:
                octets = MESSAGE + size_of(message)
            message.charge = charge = Charge(self.messages, octets)
        return charge

    def hold_queued(self, queued: QueuedMessage) -> None:
        """Charge a message that enters a queue: the first one charges the message, any other its place."""
        message = queued.message
        if message.charge is None:
            # As `hold` does, without other calls: every stored message comes here.
            if message.properties_bytes and not message.children:
                account = self.messages
                message.charge = charge = _new(Charge)
                charge.account = account
                charge.octets = octets = MESSAGE + len(message.body) + HEADERS * len(message.properties_bytes)
                account.octets += octets
            else:
                self.hold(message)
            return
        if self._spread is not message:
            self._spread, self._places = message, Charge(self.messages, 0)
        # The further places of a message share a charge: one for each would double the size of an entry.
        queued.charge = places = self._places
        places.change(places.octets + ENTRY)

    # --- the alarm ------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Raise or clear the alarm."""
        if self._spread is not None:
            self._spread, self._places = None, Charge(self.messages, 0)
        limit = self.limit
        if limit is None or self._settling:
            return
        charged = self.messages.octets + self.unfinished.octets + self.connections.octets
        if not self.alarm and charged <= self._near:
            return
        if not self.alarm and self.total <= limit:
            return
        self._settling = True
        try:
            self._decide(limit)
        finally:
            self._settling = False

    def _decide(self, limit: int) -> None:
        while True:
            # Without the margin publishers would be blocked and unblocked with every message.
            allowed = limit - limit // _MARGIN if self.alarm else limit
            above = self.total > allowed
            if above:
                self._give_way(limit // SHARE)
                above = self.total > allowed
            if above == self.alarm:
                return
            self.alarm = above
            if above:
                self._raise(limit)
            else:
                self._clear(limit)

    def _give_way(self, share: int) -> None:
        """Shorten the histories and the trace, which must not hold publishers up."""
        for history in self.histories():
            history.shrink(share)
        if self.trace is not None and self.trace.size() > share:
            self.trace.shrink(share)

    def histories(self) -> tuple[History[Any], ...]:
        """The histories that keep messages."""
        state = self._state
        outcomes = state.outcome_histories
        first: tuple[History[Any], ...] = () if state.published is None else (state.published,)
        if outcomes is None:
            return first
        return (*first, outcomes.returned, outcomes.dead_lettered, outcomes.dropped)

    def _raise(self, limit: int) -> None:
        total, most = self.total, self.largest_holder()
        _warn(
            "memory alarm: %d bytes are in use, more than memory_limit (%d); most are in %s. Publishers are "
            "blocked until messages are consumed or purged",
            total,
            limit,
            most,
        )
        if self._state.tap is not None:
            self._state.tap.event("memory alarm", None, None, total, limit, most)
        self._state.block(REASON, "memory")

    def _clear(self, limit: int) -> None:
        total = self.total
        _warn("memory alarm over: %d of %d bytes are in use; publishers continue", total, limit)
        if self._state.tap is not None:
            self._state.tap.event("memory alarm over", None, None, total, limit)
        # Input that waited is handled now. If that exceeds the limit, the other publishers stay blocked.
        self._settling = False
        self._state.unblock("memory")
        self._settling = True

    def largest_holder(self) -> str:
        """A phrase that names what holds most, without a look at each message."""
        most, name, count = 0, "", 0
        for virtual_host in self._state.virtual_hosts.values():
            for queue in virtual_host.queues.values():
                messages = len(queue.ready) + len(queue.unacked)
                octets = messages * MESSAGE + getattr(queue, "ready_bytes", 0)
                if octets > most:
                    most, name, count = octets, queue.name, messages
        unfinished, waiting = self.unfinished.octets, self.connections.octets
        if unfinished > max(most, waiting):
            return f"contents of which {unfinished} bytes have come, but not the rest"
        if waiting > most:
            return f"what clients have not read ({waiting} bytes)"
        if not name:
            return "messages that no queue holds: of transactions, delayed, or on their way to clients"
        return f"queue {name!r} with {count} messages"


def _warn(text: str, *arguments: object) -> None:
    import logging  # Imported only for alarms.

    logging.getLogger("fakeamqp").warning(text, *arguments)


def size_of(message: Message) -> int:
    """The bytes of a message's content: body, properties, and nested contents."""
    octets = len(message.body)
    if message.properties_bytes:
        octets += HEADERS * len(message.properties_bytes)
    elif message.further_bytes:
        octets += HEADERS * message.further_bytes
    elif message.history is None and message.properties.headers:  # Those of dead letters are made late.
        octets += HEADERS * _value_size(message.properties.headers)
    return octets + _children_size(message.children) if message.children else octets


def _children_size(children: Iterable[Child]) -> int:
    return sum(
        MESSAGE + len(each.body) + len(each.properties_bytes) + _children_size(each.children)
        for each in children
    )


def _value_size(value: object) -> int:
    """About how many bytes a value takes in a frame."""
    if isinstance(value, (str, bytes)):
        return 5 + len(value)
    if isinstance(value, Mapping):
        return 5 + sum(len(str(name)) + _value_size(each) for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return 5 + sum(map(_value_size, value))
    return 9


@cache
def default_limit() -> int:
    """The limit of a broker that is given none: 1 GiB, or less on a machine with little memory."""
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Not on this system.
        return _DEFAULT
    return min(_DEFAULT, int(machine * _PART_OF_MACHINE)) if machine > 0 else _DEFAULT
