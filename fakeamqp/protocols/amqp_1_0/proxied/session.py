"""What a proxy knows of one session: its links, whose numbers are whose, and what the client holds.

Client and broker count the transfers of a session and the deliveries of a link, each on its own. As long as
all frames pass, both count the same. A fault sets them apart: a message of the client that the broker does
not get, one that it gets twice, and deliveries that the client does not get, or twice. The difference is kept
as a shift: what the client counts, less what the broker counts. Every flow and disposition is translated.

A delivery that the client gets late has the id that is next then. A duplicate of a message has an id of its
own, so that the proxy knows the outcome that the client does not expect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.dialect.groups import destination
from fakeamqp.protocols.amqp_1_0.serial import MASK, wrapped

if TYPE_CHECKING:
    from fakeamqp.model.messages.message import Message
    from fakeamqp.protocols.amqp_1_0.addresses import Destination

_AHEAD: Final = 0x40000000
"""How far the delivery ids of duplicates are ahead. RabbitMQ compares ids, as far as they are not half of all
numbers apart (measured on 4.3.6 and 4.0.5)."""


class HeldDelivery(NamedTuple):
    """A delivery to the client; `broker_id` is None for a duplicate, which the broker does not know."""

    broker_id: int | None
    link: ProxiedLink
    message: Message
    settled: bool


class ProxiedLink:
    """One link, by its attach from the client."""

    def __init__(self, body: c.Attach) -> None:
        self.handle: int = body.handle
        self.link_name: str = body.name
        self.role: Literal["sender", "receiver"] = "receiver" if body.role else "sender"
        address = getattr(c.composite_or_value(body.source if body.role else body.target), "address", None)
        self.address: str | None = address if isinstance(address, str) else None
        self.destination: Destination | None = destination(address, of_target=not body.role)
        place = self.destination
        self.source_queue: str | None = (
            place.routing_key if body.role and place is not None and not place.exchange else None
        )
        self.parts: list[bytes] = []
        """Of a message that passes: what has come of it."""
        self.frames: list[bytes] = []
        """Of a delivery: its transfers, until all have come."""
        self.broker_id: int = 0
        """Of the delivery that comes."""
        self.passed: int = 0
        """How many of its transfers have passed already."""
        self.shift: int = 0
        self.delivery_count: int = body.initial_delivery_count or 0
        """Of the client, on a link on which it sends."""
        self.limit: int = 0
        """The broker's delivery count and the credit that it grants, added up."""
        self.seen_limit: int = 0
        """The same, as the client knows it."""
        self.credit: int = 0
        """What was granted last."""
        self.closing: set[str] = set()
        """The sides whose detach for one of the proxy has not come."""

    @property
    def credit_left(self) -> int:
        """How many messages may still be sent, as far as the proxy knows."""
        return self.seen_limit - self.delivery_count if self.role == "sender" else self.credit


class ProxiedSession:
    """One session of a client, with its counterpart at the broker. Views read it as a channel."""

    mode = None
    prefetch: tuple[int, int] = (0, 0)
    credit = None
    consumers: Mapping[str, Any] = MappingProxyType({})
    unfinished = 0

    def __init__(self, number: int, begin: c.Begin) -> None:
        self.number: int = number
        self.open: bool = False
        self.closing: set[str] = set()
        """The sides whose end for one of the proxy has not come."""
        self.deferred: list[c.Composite] = []
        """What the proxy has to send once the broker has begun the session."""
        self.waiting: list[bytes] = []
        """Frames of the client for the next session on this channel, while the broker ends this one."""
        self.by_handle: dict[int, ProxiedLink] = {}
        self.by_broker_handle: dict[int, ProxiedLink] = {}
        self.shift_in: int = 0
        """Of the transfers of the client."""
        self.shift_out: int = 0
        """Of the transfers to the client."""
        self._shift_ids = 0
        """Of the ids of deliveries to the client."""
        self._apart = False
        """True once ids of deliveries have been apart."""
        self.next_in: int = begin.next_outgoing_id
        """The client's next transfer, as it counts."""
        self.next_out: int = 0
        """The next transfer to the client, as it counts."""
        self.window: int = begin.incoming_window
        """How many transfers the client took at once, as it said last."""
        self.window_end: int = 0
        """The first transfer of the client, as the broker counts, that does not fit its window."""
        self.broker_window: int = 0
        """How many transfers the broker takes at once, as it said last."""
        self.stopped: bool = False
        """True while the proxy closes the window for publishers."""
        self.held: dict[int, HeldDelivery] = {}
        """By the client's id: the deliveries that it has to settle."""
        self._last: tuple[int, HeldDelivery] | None = None
        """The latest delivery to the client."""
        self._withheld = 0
        self._asked: dict[int, int] = {}
        """The broker's id of a delivery whose settlement the client waits for -> the client's."""
        self._duplicates: range = range(0)
        """The ids of duplicates of the client's messages."""

    @property
    def links(self) -> tuple[ProxiedLink, ...]:
        return tuple(self.by_handle.values())

    @property
    def ledgers(self) -> tuple[Any, ...]:
        return (_Ledger(self.held),)

    # --- messages of the client -------------------------------------------------------------------------

    def skip(self, handle: int, transfers: int) -> None:
        """The broker does not get a message."""
        link = self.by_handle.get(handle)
        self.shift_in += transfers
        self.next_in = (self.next_in + transfers) & MASK
        if link is not None:
            link.shift += 1
            link.delivery_count = (link.delivery_count + 1) & MASK

    def duplicate(self, link: ProxiedLink, original: int, transfers: int) -> int:
        """The broker gets a message once more. Returns the id of the duplicate."""
        self.shift_in -= transfers
        link.shift -= 1
        first = self._duplicates.start or (original + _AHEAD) & MASK
        self._duplicates = range(first, max(first, self._duplicates.stop) + 1)
        return self._duplicates[-1] & MASK

    def concerns_duplicates(self, body: c.Disposition) -> bool:
        """True for the outcome of duplicates, which the client does not wait for."""
        return int(body.first) in self._duplicates

    def granted(self, first: int, window: int) -> None:
        """The broker takes so many transfers from this one on, as it counts."""
        self.window_end = (first + window) & MASK
        self.broker_window = window

    @property
    def window_left(self) -> int:
        """How many transfers the broker still takes."""
        return wrapped(self.window_end - (self.next_in - self.shift_in))

    def regrant(self, link: ProxiedLink) -> c.Flow | None:
        """The credit and the window that the broker has granted, where the client has half of them left."""
        low = link.credit_left <= link.credit // 2 or self.window_left <= self.broker_window // 2
        if link.role != "sender" or not low:
            return None
        link.seen_limit = link.limit + link.shift
        credit = max(0, link.credit_left)
        return self.flow(handle=link.handle, delivery_count=link.delivery_count, link_credit=credit)

    def flow(self, **of_link: Any) -> c.Flow:
        """The state of the session, as the client counts, and of a link."""
        return c.Flow(
            next_incoming_id=self.next_in,
            incoming_window=0 if self.stopped else max(0, self.window_left),
            next_outgoing_id=self.next_out,
            outgoing_window=MASK,
            **of_link,
        )

    # --- deliveries to the client -----------------------------------------------------------------------

    def client_id(self, broker_id: int) -> int:
        """The client's id of a delivery that the broker sends now."""
        return (broker_id + self._shift_ids) & MASK

    def drop_transfer(self, more: bool) -> None:
        """The client does not get a transfer of a link that the proxy has detached."""
        self._apart = True
        self.shift_out -= 1
        self._shift_ids -= not more

    def delivered(self, held: HeldDelivery, transfers: int) -> int:
        """The broker has sent a delivery. Returns the client's id."""
        assert held.broker_id is not None
        number = self.client_id(held.broker_id)
        self.next_out = (self.next_out + transfers) & MASK
        self._last = (number, held)
        if not held.settled:
            self.held[number] = held
        return number

    def _count(self, link: ProxiedLink, transfers: int, deliveries: int) -> None:
        """The client gets so many more of deliveries than the broker sends."""
        self._apart = True
        self._shift_ids += deliveries
        self.shift_out += deliveries * transfers
        self.next_out = (self.next_out + deliveries * transfers) & MASK
        link.shift += deliveries

    def withhold_delivery(self, number: int, transfers: int) -> int:
        """The client does not get the latest delivery now. Returns the key to resume it."""
        if self._last is None or self._last[0] != number:
            return number
        held = self.held.pop(number, self._last[1])
        self._count(held.link, transfers, -1)
        self._withheld += 1
        self.held[MASK + self._withheld] = held
        self._last = ((number - 1) & MASK, held)
        return MASK + self._withheld

    def resume_delivery(self, key: int, transfers: int) -> int:
        """The client gets a withheld delivery now. Returns its id."""
        held = self.held.pop(key, None)
        return key if held is None or key <= MASK else self._next(held, transfers)

    def spare_delivery(self, transfers: int) -> int:
        """The id of a duplicate of the latest delivery."""
        assert self._last is not None
        return self._next(self._last[1]._replace(broker_id=None), transfers)

    def _next(self, held: HeldDelivery, transfers: int) -> int:
        assert self._last is not None
        number = (self._last[0] + 1) & MASK
        self._count(held.link, transfers, 1)
        if not held.settled:
            self.held[number] = held
        self._last = (number, held)
        return number

    # --- settlement -------------------------------------------------------------------------------------

    def holds(self, body: c.Disposition) -> list[tuple[int, HeldDelivery]]:
        """The deliveries that a disposition concerns, by the client's ids."""
        last = body.first if body.last is None else body.last
        count = wrapped(last - body.first) + 1
        return [(number, each) for number, each in self.held.items() if 0 <= number - body.first < count]

    def settle(
        self, body: c.Disposition
    ) -> tuple[list[tuple[int, HeldDelivery]], list[c.Disposition] | None]:
        """Take a settlement of the client: what it settles, and what the broker gets, None for the same."""
        found = self.holds(body)
        for number, _ in found:
            del self.held[number]
        held = [(number, each) for number, each in found if each.broker_id is not None]
        ids = {each.broker_id: number for number, each in held if each.broker_id is not None}
        if not body.settled:
            self._asked.update(ids)
        return held, _runs(body, ids) if self._apart else None

    def settled(self, body: c.Disposition) -> list[c.Disposition] | None:
        """What the client is told of a disposition of the broker about deliveries; None for the same."""
        if not self._apart:
            return None
        last = body.first if body.last is None else body.last
        known = dict(self._asked)
        for number, held in self.held.items():
            if held.broker_id is not None and number <= MASK:
                known[held.broker_id] = number
        meant = [each for each in known if body.first <= each <= last]
        for each in meant:
            self._asked.pop(each, None)
        return _runs(body, [known[each] for each in meant])


class _Ledger(NamedTuple):
    outstanding: Mapping[int, HeldDelivery]


def _runs(body: c.Disposition, ids: Iterable[int]) -> list[c.Disposition]:
    """Dispositions like this one, for these ids."""
    runs: list[list[int]] = []
    for number in sorted(ids):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    values = vars(body)
    return [
        c.Disposition(**{**values, "first": first, "last": None if first == last else last})
        for first, last in runs
    ]
