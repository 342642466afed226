"""A session: its windows, its links, its unsettled deliveries, and the outcomes for publishers.

Theory of operation. Each peer numbers its transfers, and says in begin and flow how many the other one may
still send (its incoming window). The broker grants its window anew when half of it is used, and closes it
during an alarm. What the client's window does not admit waits in the session. Every frame but begin and end
belongs to a link, which a handle of the client names; the broker answers with the same handle.

An error of a link detaches it, in older versions it ends the session; one of the session ends it. A session
that has ended is forgotten at once, and what still comes for it is ignored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from fakeamqp.model.deliveries.delivery import Ledger, accept_all, reject_all, release_all
from fakeamqp.model.erlang import Atom, pretty
from fakeamqp.model.errors import AccessRefused, ModelError
from fakeamqp.model.messages.message import Int64
from fakeamqp.protocols.amqp_1_0 import management
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.errors import DecodeError
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol
from fakeamqp.protocols.amqp_1_0.links import SECOND, SETTLED
from fakeamqp.protocols.amqp_1_0.messages import SectionProperties
from fakeamqp.protocols.amqp_1_0.receiving import ReceivingLink
from fakeamqp.protocols.amqp_1_0.replies import (
    Detached,
    EndFault,
    Fault,
    LinkFault,
    Reply,
    SessionCrash,
    condition_of,
    error,
    shown_text,
)
from fakeamqp.protocols.amqp_1_0.sending import SendingLink
from fakeamqp.protocols.amqp_1_0.serial import MASK, beyond, difference
from fakeamqp.protocols.amqp_1_0.values import term, untyped
from fakeamqp.protocols.base.channel import ReportingSession

if TYPE_CHECKING:
    from fakeamqp.model.access import AccessControl, User
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.tap import Settlement
    from fakeamqp.model.virtual_host import VirtualHost
    from fakeamqp.protocols.amqp_1_0.choices import Amqp10Choices
    from fakeamqp.protocols.amqp_1_0.server_connection import Amqp10Connection

SENDER, RECEIVER = False, True
"""The roles, as attach and disposition have them."""
_KEEPS_ANNOTATIONS: Final = "quorum"
"""The type of queues that keep the annotations of a modified outcome."""


class Amqp10Session(ReportingSession):
    """One session on one channel; it ends with its connection."""

    def __init__(self, connection: Amqp10Connection, channel: int, begin: c.Begin) -> None:
        assert connection.virtual_host is not None and connection.user is not None
        self.connection: Amqp10Connection = connection
        self.channel: int = channel
        self.broker: BrokerState = connection.broker
        self.choices: Amqp10Choices = connection.choices
        self.access: AccessControl = connection.broker.access
        self.virtual_host: VirtualHost = connection.virtual_host
        self.user: User = connection.user
        self.ledger: Ledger = Ledger()
        """What the client holds, by delivery id."""
        self.receiving: dict[int, ReceivingLink | management.RequestLink] = {}
        """The links on which the client sends, by handle."""
        self.sending: dict[int, SendingLink | management.ResponseLink] = {}
        """The links on which it receives, by handle."""
        self.handle_max: int = min(begin.or_default("handle_max"), self.choices.handle_max)
        self.next_incoming_id: int = begin.next_outgoing_id
        self.incoming_window: int = 0
        """How many transfers the client may still send."""
        self.tolerated: int = 0
        """How many more are taken, since the window was closed by an alarm."""
        self.stopped: bool = connection.blocked_reason is not None
        """Whether the window is closed for publishers: during an alarm, or by a fault."""
        self.next_outgoing_id: int = self.choices.first_transfer_id
        self.remote_window: int = begin.incoming_window
        """How many transfers the client still takes."""
        self.remote_outgoing_window: int = begin.outgoing_window
        self.next_delivery_id: int = 0
        self._waiting: deque[Sequence[bytes] | Callable[[], None]] = deque()
        """Transfers that the client's window does not admit, by message, and what is done after them."""
        self.sending_rest: bool = False
        """Whether the client's window has cut the message that is sent now."""
        self._ahead = 0
        """How many transfers of the client are counted that have not been carried out: see `count_ahead`."""
        self.pausing: list[SendingLink] = []
        """Links that take no more messages until those that wait are sent."""
        self._outcomes: list[tuple[int, c.Composite]] = []
        self._detaching: dict[int, None] = {}
        """The handles of links whose queue was deleted."""
        """Delivery id, encoded state and state of publishes, which are sent at the end of the turn."""
        self.open: bool = True
        self.crashed: bool = False
        """What RabbitMQ crashes at has come, so that the session says nothing more."""
        self._withheld = 0
        """How many deliveries faults have withheld."""

    def __repr__(self) -> str:
        return f"<Amqp10Session on channel {self.channel} of {self.connection.name}>"

    # --- what the model and its inspectors see --------------------------------------------------------

    @property
    def consumers(self) -> Mapping[str, Subscription]:
        links = [each for each in self.sending.values() if isinstance(each, SendingLink)]
        return {each.subscription.tag: each.subscription for each in links}

    @property
    def links(self) -> tuple[ReceivingLink | SendingLink, ...]:
        """The links, without those to the management node."""
        links = (*self.receiving.values(), *self.sending.values())
        return tuple(each for each in links if isinstance(each, (ReceivingLink, SendingLink)))

    @property
    def unfinished(self) -> int:
        return sum(each.unfinished for each in self.receiving.values())

    # --- begin and end --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Answer begin (1-0/begin/reply). During an alarm the window begins closed."""
        self.tolerated = self.choices.incoming_window
        self.incoming_window = 0 if self.stopped else self.choices.incoming_window
        self.send(c.Begin(remote_channel=self.channel, handle_max=self.handle_max, **self._windows))
        self.note("session attached")

    def _end(self, problem: c.Error | None) -> None:
        """Send end, after what is due, and forget the session."""
        self.end_turn()
        self.send(c.End(error=problem))
        self.connection.sessions.pop(self.channel, None)
        self.release()

    def release(self) -> None:
        """Free everything: links end, and held messages return to their queues."""
        self.open = False
        self.note("session detached")
        links = [*self.receiving.values(), *self.sending.values()]
        self.receiving, self.sending = {}, {}
        for link in links:
            if isinstance(link, SendingLink):
                link.stop()
        outstanding = self.ledger.take_all()
        self.note_settled("requeued", outstanding)
        # Before the subscriptions end: an auto-delete queue takes the returned messages with it.
        release_all([each for each in outstanding if each.acquired], ending="lost")
        for link in links:
            link.end()
        self._waiting.clear()
        self.pausing.clear()
        self._outcomes.clear()

    # --- frames -----------------------------------------------------------------------------------------

    def send(self, body: c.Composite, payload: bytes = b"") -> None:
        self.connection.send(self.channel, body, payload)

    def receive(self, body: c.Composite, payload: bytes) -> None:
        """Carry out a frame; its errors end the session, or detach the link."""
        if isinstance(body, c.Begin):
            self.fail(SessionCrash(f"Unexpected frame {body!r}"))
            return
        try:
            _HANDLERS[type(body)](self, body, payload)
        except LinkFault as fault:
            self._fail_link(body.handle, fault)
        except ModelError as problem:
            self.fail(EndFault(condition_of(problem), shown_text(problem)))
        except EndFault as fault:
            self.fail(fault)
        except DecodeError as problem:
            self.fail(SessionCrash(str(problem)))

    def fail(self, fault: Fault) -> None:
        """End the session for an error."""
        if self.open:
            self._end(fault.error)

    def crash(self, text: str, *, alone: bool) -> None:
        """End the session, or the connection too, for what crashes in RabbitMQ, when the turn is over."""
        connection = self.connection
        connection.gate.shut()
        self.crashed = True

        def end() -> None:
            connection.gate.reopen()
            if alone:
                self.fail(SessionCrash(text))
            else:
                connection.crash(text)

        connection.after(0, end, "ends because of a message", housekeeping=True)

    def _fail_link(self, handle: int, fault: LinkFault) -> None:
        """Detach a link for an error, or end its session, by personality (1-0/errors/link-scope)."""
        if self.choices.link_errors_end_sessions and not isinstance(fault, Detached):
            self.fail(fault)
        else:
            self.detach_for(handle, fault.error)

    def detach_for(self, handle: int, problem: c.Error) -> None:
        """Detach a link that is in use, because of an error; outcomes come first."""
        if not self.open:
            return
        self.end_turn()
        self._drop(handle)
        self.send(c.Detach(handle=handle, closed=True, error=problem))

    def queue_gone(self, handle: int) -> None:
        """Detach a link whose queue was deleted, after the answer to a client that has deleted it itself.

        RabbitMQ: measured on 4.0.5 and 4.3.6.
        """
        self._detaching[handle] = None
        if self.broker.operations.requester is not self.connection:
            self.end_turn()

    def queue_deleted(self, name: str) -> None:
        """Detach the links to a queue that was deleted, of which the session knows by a consumer."""
        for handle, link in list(self.receiving.items()):
            if isinstance(link, ReceivingLink) and link.destination == ("", name):
                self.queue_gone(handle)

    def delete_own(self, queue: Queue) -> None:
        """Delete the queue of a dynamic node with its link."""
        if not queue.deleted:
            self.virtual_host.queues.delete(queue.name, self.connection)

    def end_turn(self) -> None:
        """Send the outcomes of publishes that are due, and what the windows admit."""
        if self._outcomes:
            outcomes, self._outcomes = self._outcomes, []
            self._send_states(outcomes, RECEIVER, settled=True)
        if self._detaching:
            detaching, self._detaching = self._detaching, {}
            for handle in detaching:
                self.detach_for(handle, error(Reply.RESOURCE_DELETED))

    def take_back(self, delivery_ids: Sequence[int]) -> None:
        """Tell the client that its queue has taken back deliveries, which it has to settle."""
        if self.open and delivery_ids:
            state = c.Released()
            self._send_states([(each, state) for each in delivery_ids], SENDER, settled=False)

    def _send_states(self, states: Sequence[tuple[int, c.Composite]], role: bool, *, settled: bool) -> None:
        """Send the state of deliveries, in ranges of the same state."""
        first, state = states[0]
        last = first
        for number, following in (*states[1:], (-1, state)):
            if number == (last + 1) & MASK and (following is state or following == state):
                last = number
                continue
            end = None if first == last else last
            self.send(c.Disposition(role=role, first=first, last=end, settled=settled, state=state))
            first = last = number
            state = following

    def outcome(self, delivery_id: int, state: c.Composite) -> None:
        """Note the outcome of a publish."""
        if self.open:
            self._outcomes.append((delivery_id, state))

    # --- links ------------------------------------------------------------------------------------------

    def _attach(self, body: c.Attach, payload: bytes) -> None:
        handle = body.handle
        if handle > self.handle_max:
            text = f"link handle value ({handle}) exceeds maximum link handle value ({self.handle_max})"
            raise EndFault(Reply.FRAMING_ERROR, text)
        if handle in self.receiving or handle in self.sending:
            if self.choices.handle_in_use_ends_session:
                raise EndFault(Reply.HANDLE_IN_USE, f"handle {handle} is already associated with a link")
            self._drop(handle)
        source, target = c.read_composite(body.source), c.read_composite(body.target)
        try:
            if body.unsettled or body.incomplete_unsettled:
                raise LinkFault(Reply.NOT_IMPLEMENTED, "Link recovery not supported")
            if body.rcv_settle_mode == SECOND and body.snd_settle_mode != SETTLED:
                raise LinkFault(Reply.NOT_IMPLEMENTED, "rcv-settle-mode second not supported")
            if management.concerns(body, source, target):
                management.attach(self, body, source, target)
            elif body.role is SENDER:
                ReceivingLink.attach(self, body, source, target)
            else:
                SendingLink.attach(self, body, source, target)
        except LinkFault as fault:
            self._refuse(body, source, target, fault)
        except AccessRefused:
            raise
        except ModelError as problem:
            self._refuse(body, source, target, LinkFault(condition_of(problem), shown_text(problem)))

    def _refuse(self, body: c.Attach, source: Any, target: Any, fault: LinkFault) -> None:
        """Refuse an attach, or end the session, by personality (1-0/errors/link-scope)."""
        if self.choices.link_errors_end_sessions:
            raise EndFault(fault.condition, fault.text)
        self.refuse(body, source, target, fault.error)

    def refuse(self, body: c.Attach, source: Any, target: Any, problem: c.Error) -> None:
        """Answer an attach without the far terminus, then detach (1-0/attach/refused)."""
        sends = body.role is SENDER
        self.answer_attach(
            body,
            snd_settle_mode=body.snd_settle_mode,
            rcv_settle_mode=body.rcv_settle_mode,
            source=source if sends else None,
            target=None if sends else target,
            initial_delivery_count=None if sends else self.choices.first_delivery_count,
        )
        self.send(c.Detach(handle=body.handle, closed=True, error=problem))

    def answer_attach(self, body: c.Attach, **fields: Any) -> None:
        """Send attach for one of the client, with these fields."""
        self.send(c.Attach(name=body.name, handle=body.handle, role=not body.role, **fields))

    def _detach(self, body: c.Detach, payload: bytes) -> None:
        """Answer detach; one for an unknown handle is ignored. `closed` makes no difference."""
        if self._drop(body.handle):
            self.end_turn()
            self.send(c.Detach(handle=body.handle, closed=body.closed))

    def _drop(self, handle: int) -> bool:
        link = self.receiving.pop(handle, None) or self.sending.pop(handle, None)
        if link is None:
            return False
        link.end()
        return True

    # --- windows ----------------------------------------------------------------------------------------

    def _flow(self, body: c.Flow, payload: bytes) -> None:
        self._client_window(body)
        handle = body.handle
        if handle is None:
            return
        link = self.sending.get(handle) or self.receiving.get(handle)
        if link is None:
            raise EndFault(Reply.UNATTACHED_HANDLE, f"Unattached link handle: {handle}")
        link.flow(body)

    def _client_window(self, body: c.Flow) -> None:
        """Take the client's window, and send what it admits (1-0/flow/session)."""
        seen = self.choices.first_transfer_id if body.next_incoming_id is None else body.next_incoming_id
        if difference(seen, self.next_outgoing_id) > 0:
            text = f"next-incoming-id from FLOW ({seen}) leads next-outgoing-id ({self.next_outgoing_id})"
            raise EndFault(Reply.WINDOW_VIOLATION, text)
        self.remote_window = beyond(seen, body.incoming_window, self.next_outgoing_id)
        self.next_incoming_id = body.next_outgoing_id
        self.remote_outgoing_window = body.outgoing_window
        self._send_waiting()

    def send_transfers(self, frames: Sequence[bytes]) -> None:
        """Send the transfers of one message, as far as the client's window admits them."""
        if self._waiting or len(frames) > self.remote_window:
            self._waiting.append(frames)
            self._send_waiting()
            return
        count = len(frames)
        self.remote_window -= count
        self.next_outgoing_id = (self.next_outgoing_id + count) & MASK
        self.connection.outbox.write(frames[0] if count == 1 else b"".join(frames))

    def _count_sent(self, transfers: int) -> None:
        self.remote_window -= transfers
        self.next_outgoing_id = (self.next_outgoing_id + transfers) & MASK

    def take_delivery_id(self) -> int:
        """The id of the next delivery to the client."""
        number = self.next_delivery_id
        self.next_delivery_id = (number + 1) & MASK
        return number

    def _send_waiting(self) -> None:
        waiting = self._waiting
        write = self.connection.outbox.write
        while waiting:
            frames = waiting[0]
            if not isinstance(frames, Sequence):
                waiting.popleft()
                frames()
                continue
            if self.remote_window <= 0:
                break
            waiting.popleft()
            count = min(len(frames), self.remote_window)
            self._count_sent(count)
            if count < len(frames):
                waiting.appendleft(frames[count:])
            # All at once: a fault concerns the whole of a message.
            self.sending_rest = self.sending_rest or count < len(frames)
            write(frames[0] if count == 1 else b"".join(frames[:count]))
            self.sending_rest = count < len(frames)
        if self.pausing and not waiting:
            pausing, self.pausing = self.pausing, []
            for link in pausing:
                link.go_on()

    @property
    def waiting_transfers(self) -> int:
        return sum(len(each) for each in self._waiting if isinstance(each, Sequence))

    def in_order(self, act: Callable[[], None]) -> None:
        """Do something when the transfers that wait now have been sent: flows do not overtake them."""
        if self._waiting:
            self._waiting.append(act)
        else:
            act()

    def send_flow(self, **fields: Any) -> None:
        """Send a flow with the state of the session, and of a link if `fields` say so."""
        self.send(c.Flow(next_incoming_id=self.next_incoming_id, **self._windows, **fields))

    @property
    def _windows(self) -> dict[str, int]:
        windows = {"incoming_window": self.incoming_window, "outgoing_window": MASK}
        return {"next_outgoing_id": self.next_outgoing_id, **windows}

    def alarm(self, raised: bool) -> None:
        """Close the client's window because of an alarm, or open it again (1-0/flow/alarm)."""
        self.stopped = raised
        self.incoming_window = 0 if raised else self.choices.incoming_window
        self.tolerated = self.choices.incoming_window
        self.send_flow()

    def _transfer(self, body: c.Transfer, payload: bytes) -> None:
        if self._ahead:
            self._ahead -= 1
        else:
            self._count_transfer()
        link = self.receiving.get(body.handle)
        if link is None:
            raise EndFault(Reply.UNATTACHED_HANDLE, f"Unknown link handle: {body.handle}")
        link.transfer(body, payload)
        self._renew_window()

    def _count_transfer(self) -> None:
        """Count a transfer of the client; EndFault where its window is used up."""
        self.next_incoming_id = (self.next_incoming_id + 1) & MASK
        self.remote_outgoing_window -= 1
        if self.incoming_window > 0:
            self.incoming_window -= 1
        elif self.stopped and self.tolerated > 0:
            self.tolerated -= 1
        else:
            excess = self.choices.incoming_window if self.stopped else 0
            text = f"incoming window violation (tolerated excess tranfers: {excess})"
            raise EndFault(Reply.WINDOW_VIOLATION, text)

    def _renew_window(self) -> None:
        """Grant the client's window anew when half of it is used, except during an alarm."""
        half = self.choices.incoming_window // 2
        if self.incoming_window <= half and self.open and not self.stopped:
            self.incoming_window = self.choices.incoming_window
            self.end_turn()
            self.send_flow()

    # --- settlement -------------------------------------------------------------------------------------

    def _disposition(self, body: c.Disposition, payload: bytes) -> None:
        """Settle deliveries of any link of the session. At one of a sender RabbitMQ crashes (measured)."""
        if body.role is SENDER:
            raise SessionCrash("a disposition of a sender")
        last = body.first if body.last is None else body.last
        state = c.read_composite(body.state)
        settlement = _settlement(state)
        if not self.ledger.outstanding:
            return
        if settlement is None:
            before = "Unrecognised state: "
            raise EndFault(Reply.INVALID_FIELD, f"{before}{_shown_state(state, before)} in DISPOSITION")
        if difference(last, body.first) < 0:
            raise SessionCrash(f"a disposition from {body.first} to {last}")
        annotations = state.message_annotations or {} if isinstance(state, c.Modified) else {}
        for name in annotations:
            if not (isinstance(name, Symbol) and name.startswith("x-")):
                raise SessionCrash(f"reserved annotation key {name!r} in a modified outcome")
        deliveries = self._take(body.first, last)
        for delivery in deliveries if annotations else ():
            if delivery.queue.type_name == _KEEPS_ANNOTATIONS:
                self._annotate(delivery, annotations)
        event, settle = settlement
        self.note_settled(event, deliveries)
        settle(deliveries)
        if not body.settled and self.open:
            answer = {**vars(body), "role": SENDER, "settled": True, "state": state}
            self.send(c.Disposition(**answer))

    def _take(self, first: int, last: int) -> list[Delivery]:
        """Take the deliveries of a range out of those that are unsettled; unknown ids are ignored."""
        outstanding = self.ledger.outstanding
        count = difference(last, first) + 1
        if count <= len(outstanding):
            ids = [(first + each) & MASK for each in range(count)]
            return [outstanding.pop(each) for each in ids if each in outstanding]
        return [outstanding.pop(each) for each in [*outstanding] if (each - first) & MASK < count]

    def held(self, body: c.Disposition) -> list[Delivery]:
        """The deliveries that a disposition concerns."""
        count = (((body.first if body.last is None else body.last) - body.first) & MASK) + 1
        outstanding = self.ledger.outstanding
        return [each for tag, each in outstanding.items() if (tag - body.first) & MASK < count]

    def _annotate(self, delivery: Delivery, annotations: Mapping[Any, Any]) -> None:
        """Keep annotations of the client with a message that it gives back."""
        properties = delivery.queued.message.properties
        kept = {name: untyped(value) for name, value in annotations.items()}
        if isinstance(properties, SectionProperties):
            delivery.rewrite(properties.annotated(kept))
            return
        known = {str(name): value for name, value in kept.items() if isinstance(value, (int, str))}
        as_they_are = (bool, str)
        headers = {
            name: each if isinstance(each, as_they_are) else Int64(each) for name, each in known.items()
        }
        delivery.rewrite(properties.with_headers(headers))

    # --- what faults do to transfers ----------------------------------------------------------------------

    def count_ahead(self) -> None:
        """Count a transfer of the client that waits for the rest of its message."""
        try:
            self._count_transfer()
        except EndFault as fault:
            self.fail(fault)
        else:
            self._ahead += 1
            self._renew_window()

    def skip(self, handle: int, transfers: int) -> None:
        """Count a message of the client that is not carried out."""
        ahead = min(transfers, self._ahead)
        self._ahead -= ahead
        self.next_incoming_id = (self.next_incoming_id + transfers - ahead) & MASK
        self.incoming_window = max(0, self.incoming_window - transfers + ahead)
        if handle in self.receiving:
            self.receiving[handle].count()

    def uncount(self, handle: int, transfers: int) -> None:
        """Undo `skip`, for a message that the client has not sent."""
        self.next_incoming_id = (self.next_incoming_id - transfers) & MASK
        self.incoming_window += transfers
        if handle in self.receiving:
            self.receiving[handle].count(-1)

    def replenish(self, handle: int) -> None:
        """Grant window and credit again, where a transfer that was counted has used half of them."""
        self._renew_window()
        link = self.receiving.get(handle)
        if isinstance(link, ReceivingLink):
            link.replenish()

    def spare_delivery(self, transfers: int) -> int:
        """A delivery id for a copy of a delivery; settling it has no effect."""
        self._count_sent(transfers)
        return self.take_delivery_id()

    def withhold_delivery(self, delivery_id: int, transfers: int) -> int:
        """The client does not get a delivery now: the next one has its id. Returns the key to resume it."""
        if delivery_id != (self.next_delivery_id - 1) & MASK:
            return delivery_id
        self.next_delivery_id = delivery_id
        self._count_sent(-transfers)
        self._withheld += 1
        return self._reenter(delivery_id, MASK + self._withheld)

    def resume_delivery(self, key: int, transfers: int) -> int:
        """The client gets a withheld delivery now. Returns its id."""
        if key <= MASK:
            return key
        return self._reenter(key, self.spare_delivery(transfers))

    def _reenter(self, before: int, now: int) -> int:
        """Give a delivery that is not settled another id."""
        delivery = self.ledger.outstanding.pop(before, None)
        if delivery is not None:
            self.ledger.enter(now, delivery)
        return now

    def authorise_topic(self, action: Literal["write", "read"], exchange: str, key: str) -> None:
        """AccessRefused if the user lacks the permission for a routing key of a topic exchange."""
        found = self.virtual_host.exchanges.get(exchange)
        if found is not None and found.type_name == "topic":
            self.access.check_topic(self.user, self.virtual_host.name, action, exchange, key)

    # --- rights -------------------------------------------------------------------------------------------

    def check_links(self, user: User) -> None:
        """End the session if a link lacks a permission that it was attached with."""
        self.user = user
        try:
            for source in self.receiving.values():
                if isinstance(source, ReceivingLink) and source.destination is not None:
                    self.authorise("write", "exchange", source.destination.exchange)
            for link in self.sending.values():
                if isinstance(link, SendingLink):
                    self.authorise("read", "queue", link.subscription.queue.name)
        except AccessRefused as problem:
            self.fail(EndFault(condition_of(problem), shown_text(problem)))


def _shown_state(state: Any, before: str = "") -> str:
    """The Erlang term of a state, behind a text."""
    state = c.composite_or_value(state)
    if isinstance(state, c.Composite):
        members = (f"'v1_0.{state.NAME.replace('-', '_')}'", *map(_shown_state, vars(state).values()))
        return pretty(tuple(map(Atom, members)), before)
    return "undefined" if state is None else term(state)


def _settlement(state: Any) -> tuple[Settlement, Callable[[list[Delivery]], object]] | None:
    """The event of an outcome, and how it settles deliveries; None for a state that is no outcome.

    Without delivery-failed, undeliverable-here is no failure (RabbitMQ: measured on 4.0.5 and 4.3.6).
    """
    match state:
        case c.Accepted():
            return "acked", accept_all
        case c.Rejected():
            return "rejected", reject_all
        case c.Released():
            return "requeued", release_all
        case c.Modified(undeliverable_here=True):
            return "rejected", partial(reject_all, ending="rejected" if state.delivery_failed else "released")
        case c.Modified():
            return "requeued", partial(release_all, ending="failed" if state.delivery_failed else "released")
    return None


_HANDLERS: Final[Mapping[type[c.Composite], Callable[[Amqp10Session, Any, bytes], None]]] = {
    c.Attach: Amqp10Session._attach,
    c.Flow: Amqp10Session._flow,
    c.Transfer: Amqp10Session._transfer,
    c.Disposition: Amqp10Session._disposition,
    c.Detach: Amqp10Session._detach,
    c.End: lambda session, body, payload: session._end(None),
}
