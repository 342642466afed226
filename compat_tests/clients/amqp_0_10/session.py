"""A session: two streams of numbered commands, which outlive the transport that carries them.

Of our own commands each is kept until the broker has completed it; of the broker's, only how far they have
come. So a session that lost its transport in the middle of anything goes on with another: each side says what
it expects, and the other sends that and what comes behind it (session/replay).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from compat_tests.clients.amqp_0_10.errors import ConnectionLost, SessionDetached, SessionFailed, SessionLost
from compat_tests.clients.amqp_0_10.message import Message
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import CreditUnit, FlowMode, SegmentType
from fakeamqp.protocols.amqp_0_10.codec.frames import Assembly
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet, precedes, successor
from fakeamqp.protocols.amqp_0_10.codec.structs import Command, Control, Struct

if TYPE_CHECKING:
    from compat_tests.clients.amqp_0_10.connection import Connection

__all__ = ["UNLIMITED", "Message", "Session"]

UNLIMITED = 0xFFFFFFFF

_SECONDS = 20.0


def ids(*messages: Message) -> SequenceSet:
    """The transfers that these messages came by."""
    return SequenceSet.of(*[message.id for message in messages])


class Session:
    """One session, attached or not. Short forms of commands wait until these are done, unless told not to.

    Args:
        name: its name, which only has to differ from those of the user's other sessions.
        timeout: seconds that the broker is asked to keep it without a transport; None = for ever.
    """

    def __init__(self, name: bytes, timeout: int | None = 0) -> None:
        self.name = name
        self.timeout = timeout
        """What was asked for, and from the first attachment on what was granted."""
        self.connection: Connection | None = None
        self.channel = 0
        self.incoming: defaultdict[str, deque[Message]] = defaultdict(deque)
        """Messages by destination, as they came."""
        self.other: list[Command] = []
        """Commands of the broker that are neither transfers nor answers: accept, reject, stop, flow, ..."""
        self.failure: x.ExecutionException | None = None
        self._why: Exception | None = None
        """What ended the last transport, if not a control of the session's own."""
        self._known = False
        """Whether the broker has attached it before."""
        # Our commands:
        self._next_id = 0
        self._sent: dict[int, list[tuple[int, bytes]]] = {}
        """The segments of those that are not known to be completed."""
        self._results: dict[int, Any] = {}
        # The broker's commands:
        self._due: int | None = None
        """The first that has not come; None while none has."""
        self._place: int | None = None
        """The id of the next one on this transport; None before a command point."""
        self._done = SequenceSet()
        """Those that we have completed and the broker is not known to know of."""
        # What controls have answered:
        self._answers: dict[type[Control], Any] = {}

    # --- transports -----------------------------------------------------------------------------------

    def attach(self, connection: Connection, *, force: bool = False) -> None:
        """Take this transport: for the first time, or to go on where the last one ended.

        Raises:
            SessionDetached: the broker does not attach it; its code says why.
            SessionLost: it was attached before, and the broker has forgotten it; it is detached again.
        """
        self.connection = connection
        self.channel = connection.free_channel()
        connection.sessions[self.channel] = self
        self._call_control(c.SessionAttach(name=self.name, force=force), c.SessionAttached)
        if self.timeout != 0:
            request = c.SessionRequestTimeout(timeout=self.timeout)
            self.timeout = self._call_control(request, c.SessionTimeout).timeout
        expected = self._call_control(c.SessionFlush(expected=True), c.SessionExpected)
        again, self._known = self._known, True
        self._go_on(expected.commands or SequenceSet(), again)

    def _go_on(self, expected: SequenceSet, again: bool) -> None:
        """Send what the broker does not have; it is empty if and only if the broker knows of nothing."""
        if expected:
            first = next(iter(expected))
            self._next_id = self._next_id or first  # Somebody else may have begun it.
        elif self._next_id and 0 not in self._sent:
            self.detach()
            raise SessionLost(f"the broker has forgotten session {self.name!r}")
        else:
            first = 0
        self._control(c.SessionCommandPoint(command_id=first, command_offset=0))
        for id_, segments in self._sent.items():
            if not precedes(id_, first):
                self._write(segments)
        if again:
            self._control(c.SessionFlush(completed=True))
            if self._done:
                self._control(c.SessionCompleted(commands=self._done))

    def detach(self) -> None:
        """Give the transport up; how long the broker keeps the session was agreed on."""
        self._call_control(c.SessionDetach(name=self.name), c.SessionDetached)

    def close(self) -> None:
        """End it: detach, and have the broker keep nothing, whatever was agreed on."""
        if self.timeout != 0:
            self._call_control(c.SessionRequestTimeout(timeout=0), c.SessionTimeout)
        self.detach()

    def detached(self, why: Exception | None = None) -> None:
        """The transport has gone."""
        self._why = why
        if self.connection is not None:
            self.connection.sessions.pop(self.channel, None)
        self.connection = None
        self._place = None

    @property
    def attached(self) -> bool:
        """Whether it has a transport."""
        return self.connection is not None

    # --- our commands ---------------------------------------------------------------------------------

    def send(
        self,
        command: Command,
        *,
        header: Iterable[Struct] | None = None,
        body: bytes | None = None,
        sync: bool = False,
    ) -> int:
        """Send a command, and do not wait; without a transport it is sent when there is one again.

        Returns:
            Its id.

        Raises:
            SessionFailed, SessionDetached: the session has ended.
        """
        self._check()
        segments: list[tuple[int, bytes]] = [(SegmentType.COMMAND, command.encode(sync))]
        if header is not None:
            segments.append((SegmentType.HEADER, structs.encode_header(header)))
        if body is not None:
            segments.append((SegmentType.BODY, body))
        id_, self._next_id = self._next_id, successor(self._next_id)
        self._sent[id_] = segments
        if self.attached:
            with suppress(ConnectionLost):  # Who waits for the command will see.
                self._write(segments)
        return id_

    def call(self, command: Command, **content: Any) -> Any:
        """Send a command, and wait until it is done.

        Returns:
            The struct of its result, or None where it has none.

        Raises:
            See `send`, and `result`.
        """
        return self.result(self.send(command, sync=True, **content))

    def result(self, id_: int, timeout: float = _SECONDS) -> Any:
        """Wait until a command is done that was sent, perhaps by another transport.

        Raises:
            SessionFailed: it failed, or another before it did.
            ConnectionLost: the transport has ended, and what has become of the command is not known.
        """
        self._wait(lambda: id_ not in self._sent, timeout)
        return self._results.pop(id_, None)

    def is_done(self, id_: int) -> bool:
        """Whether a command that was sent is known to be done."""
        return id_ not in self._sent

    # --- the broker's commands ------------------------------------------------------------------------

    def get(self, destination: str, timeout: float = _SECONDS) -> Message:
        """The next message for a destination, waiting for it if need be."""
        queue = self.incoming[destination]
        self._wait(lambda: queue, timeout)
        return queue.popleft()

    def drain(self, destination: str) -> list[Message]:
        """All messages for a destination that the broker has sent by now."""
        self.sync()
        queue = self.incoming[destination]
        found = list(queue)
        queue.clear()
        return found

    def complete(self, *messages: Message) -> None:
        """Say that these are dealt with, now or by the next transport; a window gets its credit back."""
        for message in messages:
            self._done.add(message.id)
        if self.attached:
            with suppress(ConnectionLost):
                self._control(c.SessionCompleted(commands=self._done))

    def receive_command(self, assembly: Assembly) -> None:
        """A command of the broker's has come."""
        assert self._place is not None, "a command point comes first"
        id_, self._place = self._place, successor(self._place)
        if self._due is not None and precedes(id_, self._due):
            return  # It came before, by another transport.
        assert self._due in (None, id_), f"{self._due} is due, {id_} has come"
        self._due = self._place
        command, sync = x.decode(assembly.first)
        if isinstance(command, x.MessageTransfer):
            message = Message(id_, command, structs.decode_header(assembly.header or b""), assembly.body)
            self.incoming[message.destination].append(message)
        else:
            self._done.add(id_)
            if isinstance(command, x.ExecutionResult):
                assert command.command_id is not None
                self._results[command.command_id] = command.value
            elif isinstance(command, x.ExecutionException):
                self.failure = command
            else:
                self.other.append(command)
        if sync:
            self._control(c.SessionCompleted(commands=self._done))

    def receive_control(self, control: Control) -> None:
        """A control for the session has come."""
        self._answers[type(control)] = control
        if isinstance(control, c.SessionCommandPoint):
            self._place = control.command_id
        elif isinstance(control, c.SessionCompleted):
            commands = control.commands or SequenceSet()
            for id_ in commands.select(self._sent):
                del self._sent[id_]
            if control.timely_reply:
                self._control(c.SessionKnownCompleted(commands=commands))
        elif isinstance(control, c.SessionKnownCompleted):
            self._done.remove(control.commands or SequenceSet())
        elif isinstance(control, c.SessionFlush):
            self._tell(control)
        elif isinstance(control, c.SessionDetach):
            self._control(c.SessionDetached(name=self.name, code=0))
            self.detached()
        elif isinstance(control, c.SessionDetached):
            self.detached()

    def _tell(self, asked: c.SessionFlush) -> None:
        """The broker wants to know what we have of its commands."""
        if asked.expected:
            due = SequenceSet() if self._due is None else SequenceSet.of(self._due)
            self._control(c.SessionExpected(commands=due))
        if asked.confirmed:
            self._control(c.SessionConfirmed(commands=self._done))
        if asked.completed:
            self._control(c.SessionCompleted(commands=self._done))

    def sync(self) -> None:
        """Wait until all that was sent is done; what the broker had to send by then has come."""
        self.call(x.ExecutionSync())

    # --- exchanges and queues -------------------------------------------------------------------------

    def declare(self, queue: str, **arguments: Any) -> None:
        self.call(x.QueueDeclare(queue=queue, **arguments))

    def delete(self, queue: str, **arguments: Any) -> None:
        self.call(x.QueueDelete(queue=queue, **arguments))

    def purge(self, queue: str) -> None:
        self.call(x.QueuePurge(queue=queue))

    def query(self, queue: str) -> structs.QueueQueryResult:
        result = self.call(x.QueueQuery(queue=queue))
        assert isinstance(result, structs.QueueQueryResult)
        return result

    def depth(self, queue: str) -> int:
        """How many messages wait in a queue."""
        count = self.query(queue).message_count
        assert count is not None
        return count

    def declare_exchange(self, exchange: str, type: str = "direct", **arguments: Any) -> None:
        self.call(x.ExchangeDeclare(exchange=exchange, type=type, **arguments))

    def delete_exchange(self, exchange: str, **arguments: Any) -> None:
        self.call(x.ExchangeDelete(exchange=exchange, **arguments))

    def bind(self, queue: str, exchange: str, key: str | None = None, **arguments: Any) -> None:
        self.call(
            x.ExchangeBind(queue=queue, exchange=exchange, binding_key=key, arguments=arguments or None)
        )

    def unbind(self, queue: str, exchange: str, key: str | None = None) -> None:
        self.call(x.ExchangeUnbind(queue=queue, exchange=exchange, binding_key=key))

    def bound(self, exchange: str, **which: Any) -> structs.ExchangeBoundResult:
        result = self.call(x.ExchangeBound(exchange=exchange, **which))
        assert isinstance(result, structs.ExchangeBoundResult)
        return result

    # --- messages out ---------------------------------------------------------------------------------

    def publish(
        self,
        body: bytes | None = b"",
        *,
        exchange: str | None = None,
        key: str | None = None,
        headers: dict[str, Any] | None = None,
        properties: structs.MessageProperties | None = None,
        wait: bool = True,
        **delivery: Any,
    ) -> int:
        """Send a message; what else is named is a delivery property. Answers with the id of the transfer.

        Without a key and delivery properties there are no delivery-properties; without headers and
        properties no message-properties; and without any of them no header.
        """
        header: list[Struct] = []
        if key is not None or delivery:
            header.append(structs.DeliveryProperties(routing_key=key, **delivery))
        if headers is not None:
            properties = properties or structs.MessageProperties()
            properties.application_headers = headers
        if properties is not None:
            header.append(properties)
        transfer = x.MessageTransfer(destination=exchange)
        id_ = self.send(transfer, header=header or None, body=body, sync=wait)
        if wait:
            self.result(id_)
        return id_

    # --- messages in ----------------------------------------------------------------------------------

    def subscribe(
        self,
        queue: str | None,
        destination: str | None,
        *,
        credit: int | None = UNLIMITED,
        octets: int | None = UNLIMITED,
        mode: FlowMode | None = None,
        **arguments: Any,
    ) -> None:
        """Subscribe and give credit, unless it is None. The flow mode is a window if it is not set."""
        self.call(x.MessageSubscribe(queue=queue, destination=destination, **arguments))
        if mode is not None:
            self.call(x.MessageSetFlowMode(destination=destination, flow_mode=mode))
        self.flow(destination, credit, octets)

    def flow(self, destination: str | None, credit: int | None = None, octets: int | None = None) -> None:
        """Give credit."""
        for unit, value in ((CreditUnit.MESSAGE, credit), (CreditUnit.BYTE, octets)):
            if value is not None:
                self.call(x.MessageFlow(destination=destination, unit=unit, value=value))

    def stop(self, destination: str) -> None:
        self.call(x.MessageStop(destination=destination))

    def flush(self, destination: str) -> None:
        self.call(x.MessageFlush(destination=destination))

    def cancel(self, destination: str) -> None:
        self.call(x.MessageCancel(destination=destination))

    def accept(self, *messages: Message) -> None:
        self.call(x.MessageAccept(transfers=ids(*messages)))

    def reject(self, *messages: Message) -> None:
        self.call(x.MessageReject(transfers=ids(*messages)))

    def release(self, *messages: Message, set_redelivered: bool = False) -> None:
        self.call(x.MessageRelease(transfers=ids(*messages), set_redelivered=set_redelivered))

    def acquire(self, *messages: Message) -> SequenceSet:
        """Take messages that were only shown; answers with those that could be taken."""
        result = self.call(x.MessageAcquire(transfers=ids(*messages)))
        assert isinstance(result, structs.Acquired) and result.transfers is not None
        return result.transfers

    # --- in and out -----------------------------------------------------------------------------------

    def _call_control(self, control: Control, answer: type[Control]) -> Any:
        """Send a control and wait for its answer."""
        self._answers.clear()
        self._control(control)
        connection = self._connection()
        connection.wait(lambda: answer in self._answers or c.SessionDetached in self._answers)
        if answer not in self._answers:
            raise SessionDetached(self._answers[c.SessionDetached].code)
        return self._answers[answer]

    def _wait(self, until: Any, timeout: float) -> None:
        """Read until that is so, or the session ends."""
        if until():
            return
        self._check()
        self._connection().wait(lambda: until() or not self.attached, timeout)
        if not until():
            self._check()
            self._connection()

    def _check(self) -> None:
        """Whether it can go on."""
        if self.failure is not None:
            raise SessionFailed(self.failure)
        detached = self._answers.get(c.SessionDetached)
        if detached is not None and not self.attached:
            raise SessionDetached(detached.code)

    def _connection(self) -> Connection:
        if self.connection is None:
            raise self._why or ConnectionLost("the session has no transport")
        return self.connection

    def _control(self, control: Control) -> None:
        self._connection().send(control, self.channel)

    def _write(self, segments: list[tuple[int, bytes]]) -> None:
        self._connection().send_command(segments, self.channel)
