"""The broker's side of one session: its state, subscriptions, unsettled deliveries and command streams.

It belongs to a user and has a name; it has a transport only while it is attached. `command_streams` numbers
and carries out its commands; only this module turns their errors into execution.exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.delivery import Ledger, release_all
from fakeamqp.model.deliveries.subscription import Gate
from fakeamqp.model.errors import ModelError
from fakeamqp.model.extensions import Extension
from fakeamqp.protocols.amqp_0_10.codec import commands, controls
from fakeamqp.protocols.amqp_0_10.codec.constants import DetachCode, SegmentType
from fakeamqp.protocols.amqp_0_10.command_streams import Incoming, Outgoing
from fakeamqp.protocols.amqp_0_10.replies import SessionFault, error_code, short_text
from fakeamqp.protocols.amqp_0_10.states import SESSION_TRANSITIONS, SessionState
from fakeamqp.protocols.amqp_0_10.transfers import Publisher
from fakeamqp.protocols.base.channel import ReportingSession
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.protocols.base.handshakes import LimitedLog

if TYPE_CHECKING:
    from fakeamqp.model.access import AccessControl, User
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.personality.choices import Personality
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.timers import Timer
    from fakeamqp.model.transactions import Transaction
    from fakeamqp.model.virtual_host.virtual_host import VirtualHost
    from fakeamqp.protocols.amqp_0_10.choices import Amqp010Choices
    from fakeamqp.protocols.amqp_0_10.codec.frames import Assembly
    from fakeamqp.protocols.amqp_0_10.codec.structs import Command, Control
    from fakeamqp.protocols.amqp_0_10.contents import ContentConsumers
    from fakeamqp.protocols.amqp_0_10.server_connection import Amqp010Connection
    from fakeamqp.protocols.amqp_0_10.server_subscription import ServerSubscription


class _DetachedLog(LimitedLog):
    about = "detached sessions that end"


class DetachedSessions(Extension):
    """The detached sessions of one broker, the one first that has been detached longest.

    Beyond `Bounds.detached_sessions` that one ends, as if its timeout had run out: a client that comes back
    finds a new session (session.attach, session.expected).
    """

    def __init__(self, owner: BrokerState) -> None:
        self._log = owner.extensions[_DetachedLog]
        self._most = owner.bounds.detached_sessions
        self._sessions: dict[ServerSession, None] = {}

    def add(self, session: ServerSession) -> None:
        self._sessions[session] = None
        if len(self._sessions) > self._most:
            longest = next(iter(self._sessions))
            self._log.warning(
                "more than %d sessions are detached; session %r, detached longest, ends",
                self._most,
                longest.display_name,
            )
            longest.end()

    def remove(self, session: ServerSession) -> None:
        self._sessions.pop(session, None)


class ServerSession(ReportingSession):
    """One session, attached or not. It owns exclusive queues, subscriptions and unsettled deliveries.

    Its `key` is the names of virtual host and user, and its own name, which is bytes (session/name).
    """

    def __init__(self, connection: Amqp010Connection, key: tuple[str, str, bytes]) -> None:
        assert connection.virtual_host is not None and connection.user is not None
        self.key = key
        self.session_name: bytes = key[2]
        self.state: SessionState = SessionState.DETACHED
        self.connection: Amqp010Connection | None = None
        """The connection that it is attached to."""
        self.channel: int = 0
        self.connection_name: str = connection.name
        """The name of the connection that it is or was attached to."""
        self.broker: BrokerState = connection.broker
        self.personality: Personality = connection.personality
        self.choices: Amqp010Choices = connection.choices
        self.access: AccessControl = connection.broker.access
        self.virtual_host: VirtualHost = connection.virtual_host
        self.user: User = connection.user
        self.timeout: int | None = 0
        """For how many seconds it is kept without a transport; None is for ever."""
        self.incoming: Incoming = Incoming(self)
        self.outgoing: Outgoing = Outgoing(self)
        self.publisher: Publisher = Publisher(self)
        self.ledger: Ledger = Ledger()
        """What it holds, by the ids of the transfers that brought it."""
        self.subscriptions: dict[str, ServerSubscription] = {}
        """By destination."""
        self.consuming: dict[str, ContentConsumers] = {}
        """What classes file and stream keep of the session, by class."""
        self.gate: Gate = Gate()
        """Shut while there is no transport."""
        self.transaction: Transaction | None = None
        """What collects its transfers and accepts now: its own transaction, or that of a branch."""
        self.own_transaction: Transaction | None = None
        self._expiry: Timer | None = None

    def __repr__(self) -> str:
        return f"<ServerSession {self.session_name!r} of {self.connection_name} {self.state.name.lower()}>"

    # --- what the model and its inspectors see --------------------------------------------------------

    @property
    def name(self) -> str:
        return self.connection_name

    @property
    def attached(self) -> bool:
        return self.connection is not None

    @property
    def ends_at(self) -> float | None:
        """When, on the broker's clock, it ends unless it is attached again; None for never."""
        return None if self._expiry is None or not self._expiry.active else self._expiry.due

    @property
    def alive(self) -> bool:
        """True while commands are carried out: it is attached, and no exception has ended it."""
        return self.state is SessionState.ATTACHED

    @property
    def unfinished(self) -> int:
        return self.incoming.charge.octets

    @property
    def consumers(self) -> Mapping[str, Subscription]:
        found = {destination: each.subscription for destination, each in self.subscriptions.items()}
        for consumers in self.consuming.values():
            found.update((tag, each.subscription) for tag, each in consumers.by_tag.items())
        return found

    @property
    def consumer_count(self) -> int:
        return len(self.subscriptions) + sum(len(each.by_tag) for each in self.consuming.values())

    # --- transports -----------------------------------------------------------------------------------

    def attach(self, connection: Amqp010Connection, channel: int) -> None:
        """Take a transport (session.attach/reply)."""
        self._follow("session.attach")
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self.connection = connection
        self.channel = channel
        self.connection_name = connection.name
        connection.sessions[channel] = self
        self.note("session attached")
        self.send_control(controls.SessionAttached(name=self.session_name))
        self.broker.extensions[DetachedSessions].remove(self)
        self.outgoing.attached()
        for each in self._takers():
            each.attached()
        self.gate.reopen()

    def detach(self, code: DetachCode | None = None) -> None:
        """Detach, and tell the client the code (session.detached/reason); completions come first."""
        if self.connection is None:
            return
        self.incoming.end_turn()
        if code is not None:
            self.send_control(controls.SessionDetached(name=self.session_name, code=code))
        self._leave()
        self._keep()

    def forced_off(self) -> None:
        """Let another transport take over the session (session.attach/force), unless it has failed.

        Completions go out first, on the old transport.
        """
        self.incoming.end_turn()
        self.send_control(controls.SessionDetached(name=self.session_name, code=DetachCode.SESSION_BUSY))
        self._leave()
        if self.state is SessionState.FAILED:
            self.end()
        else:
            self._follow("KEEP")

    def transport_lost(self) -> None:
        if self.connection is not None:
            self._leave()
            self._keep()

    def _takers(self) -> list[ServerSubscription | ContentConsumers]:
        return [*self.subscriptions.values(), *self.consuming.values()]

    def _leave(self) -> None:
        assert self.connection is not None
        self.gate.shut()
        self.connection.sessions.pop(self.channel, None)
        self.note("session detached")
        self.connection = None
        for each in self._takers():
            each.attached()
        self.incoming.detached()
        self.outgoing.detached()

    def _keep(self) -> None:
        """Stay detached for the agreed time (session.request-timeout/meaning)."""
        if self.state is SessionState.FAILED or self.timeout == 0:
            self.end()
            return
        self._follow("KEEP")
        self.broker.extensions[DetachedSessions].add(self)
        if self.timeout is not None:
            due = self.broker.clock.now() + self.timeout
            label = f"session {self.display_name!r} ends, detached"
            self._expiry = self.broker.timers.call_at(due, self.end, label)

    @property
    def display_name(self) -> str:
        return self.session_name.decode("utf-8", "backslashreplace")

    def _follow(self, event: str) -> None:
        self.state = SESSION_TRANSITIONS[self.state].get(event, self.state)

    # --- errors ---------------------------------------------------------------------------------------

    def fail(
        self,
        problem: SessionFault | ModelError | WireError,
        command_id: int | None = None,
        command: Command | None = None,
        assembly: Assembly | None = None,
    ) -> None:
        """End the session for an error (execution/ends-session).

        The client gets the exception and is asked to detach; until then its commands are discarded.
        """
        if self.state is not SessionState.ATTACHED:
            self.end()
            return
        ids = b"" if assembly is None else assembly.first[:2]
        self.fail_with(error_code(problem), str(problem), ids, command_id, _field_index(problem, command))

    def fail_with(
        self,
        code: int,
        text: str,
        ids: bytes = b"",
        command_id: int | None = None,
        field_index: int | None = None,
    ) -> None:
        """End the session with an exception, and ask the client to detach.

        The class and the code of the command to blame are `ids`, as far as they are known.
        """
        self.incoming.end_turn()
        exception = commands.ExecutionException(
            error_code=code,
            command_id=command_id,
            class_code=ids[0] if len(ids) == 2 else None,
            command_code=ids[1] if len(ids) == 2 else None,
            field_index=field_index,
            description=short_text(text, 1000),
        )
        self.outgoing.send(((SegmentType.COMMAND, exception.encode()),), last=True)
        self.send_control(controls.SessionDetach(name=self.session_name))
        self._follow("FAIL")
        self.note("session failed", detail=text, code=int(code))
        self.release()

    def client_failed(self) -> None:
        """A broker's command has failed at the client, which ends the session as well."""
        if self.state is SessionState.ATTACHED:
            self._follow("FAIL")
            self.release()

    def send_control(self, control: Control) -> None:
        if self.connection is not None:
            self.connection.send(self.channel, control)

    def send(self, command: Command) -> int:
        """Send a command without header and body. Returns its id."""
        return self.outgoing.send(((SegmentType.COMMAND, command.encode()),))

    def end(self) -> None:
        """End the session: it cannot be attached again."""
        if self.state is SessionState.ENDED:
            return
        if self.connection is not None:
            self._leave()
        self._follow("END")
        self.broker.extensions[DetachedSessions].remove(self)
        if self._expiry is not None:
            self._expiry.cancel()
        if self.broker.sessions.get(self.key) is self:
            del self.broker.sessions[self.key]
        self.release()

    def release(self) -> None:
        """Free everything: subscriptions end, held messages return, exclusive queues are deleted
        (message.subscribe/lifetime, tx.rollback/discards, dtx.end/session-closed, queue.declare/exclusive-*).
        """
        self.gate.shut()
        for consumers in self.consuming.values():
            consumers.let_go()
        ended = self._takers()
        self.subscriptions, self.consuming = {}, {}
        outstanding = self.ledger.take_all()
        self.virtual_host.branches.leave(self)
        if self.own_transaction is not None:
            outstanding = [*outstanding, *self.own_transaction.rollback()]
        self.transaction = self.own_transaction = None
        self.note_settled("requeued", outstanding)
        # Before the subscriptions end: an auto-delete queue takes the returned messages with it.
        release_all([each for each in outstanding if each.acquired], ending="lost")
        for each in ended:
            each.end()
        self.virtual_host.queues.release_owner(self)
        self.publisher.fragments.keep()
        self.outgoing.clear()


def _field_index(problem: SessionFault | ModelError | WireError, command: Command | None) -> int | None:
    """The index of the wrong field, counted from zero (execution.exception/index-zero-based)."""
    name = getattr(problem, "field", None)
    if command is not None and isinstance(name, str):
        for index, (field, _) in enumerate(command.FIELDS):
            if field == name:
                return index
    known = getattr(problem, "field_index", None)
    return known if isinstance(known, int) else None
