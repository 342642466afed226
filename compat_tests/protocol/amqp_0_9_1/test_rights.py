"""Which right each method of each protocol needs, on which name, and by which ways round.

The tables below are the matrix. A user who has exactly the rights of a row may do it. One who lacks one of
them, and has all others on all names, is refused with 403, and nothing has changed. A method in no table
fails `test_every_method_has_a_row_or_needs_no_right`. RabbitMQ's part is measured by the differential
cases `acl/*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server as FramedServer
from compat_tests.scripted.amqp_0_9_1 import Client as BaseClient, Server as BaseServer
from compat_tests.scripted.amqp_0_10 import Server, Session, SessionFailed
from compat_tests.scripted.requesting import Requester
from compat_tests.tools.matrix import cases
from fakeamqp.model.access import Permission, TopicPermission, User
from fakeamqp.model.messages.message import Message
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_0_9.choices import letter_of
from fakeamqp.protocols.amqp_0_9.codec import METHODS as METHODS_0_9
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_10.codec import structs
from fakeamqp.protocols.amqp_0_10.codec.commands import COMMANDS
from fakeamqp.protocols.amqp_0_10.codec.structs import Command


class Row(NamedTuple):
    """A method, and the rights that it needs.

    Attributes:
        method: its name.
        way: what is special about this use of it.
        needs: rights, such as "configure queue new, write exchange x"; "any" is any one of the three, where
            the personality wants one; "topic-read" and "topic-write" name an exchange and a key.
        fields: the method's fields.
        headers: of the content; `None` if the method has none.
        before: methods that the same user sends first.
        also: rights for those.
        only: part of the names of the personalities that have this.
    """

    method: str
    way: str
    needs: str
    fields: Mapping[str, Any]
    headers: Mapping[str, Any] | None = None
    before: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    also: str = ""
    only: str = ""


_REPLIES = "amq.rabbitmq.reply-to"
_TO_X = {"x-dead-letter-exchange": "x"}
_TO_DEFAULT = {"x-dead-letter-exchange": ""}
_ELSE_Y = {"alternate-exchange": "y"}
_ELSE_DEFAULT = {"alternate-exchange": ""}
_TO_QUEUES = "write exchange amq.default"
_REJECTED = {"delivery_tag": 1, "requeue": False}
_NEW = {"exchange": "new", "type": "direct"}
_TOPIC = {"exchange": "t", "routing_key": "key"}
_Y = {"exchange": "y", "routing_key": "k"}
_X_TO_Y = {"destination": "y", "source": "x"}
_HOLDING: Any = {"before": (("basic.get", {"queue": "d"}),), "also": "read queue d"}
_ELSE = "configure exchange new, read exchange new, write exchange"
_DEAD = "configure queue new, read queue new, write exchange"

# --- the matrix ------------------------------------------------------------------------------------------
#
# There are the queues q and d, with a message each; the direct exchanges x and y, and the topic exchange t.
# q is bound to x, and y to x, by k. What d rejects, and what x cannot route, goes to y.

BOTH: list[Row] = [
    Row("queue.declare", "", "configure queue new", {"queue": "new"}),
    Row("queue.declare", "existing", "configure queue q", {"queue": "q"}),
    Row("queue.declare", "passive", "any queue q", {"queue": "q", "passive": True}),
    Row("queue.declare", "named by the server", "configure queue amq.gen-*", {}),
    Row("queue.declare", "dead letters", f"{_DEAD} x", {"queue": "new", "arguments": _TO_X}),
    Row(
        "queue.declare",
        "dead letters to the default exchange",
        f"{_DEAD} amq.default",
        {"queue": "new", "arguments": _TO_DEFAULT},
    ),
    Row(
        "queue.declare",
        "named by the server, dead letters to the default exchange",
        "configure queue amq.gen-*, read queue amq.gen-*, write exchange amq.default",
        {"arguments": _TO_DEFAULT},
    ),
    Row("queue.bind", "", "write queue q, read exchange y", {"queue": "q", "exchange": "y"}),
    Row("queue.bind", "topic", "write queue q, read exchange t, topic-read t key", {"queue": "q", **_TOPIC}),
    Row(
        "queue.unbind",
        "",
        "write queue q, read exchange x",
        {"queue": "q", "exchange": "x", "routing_key": "k"},
    ),
    Row(
        "queue.unbind",
        "topic",
        "write queue q, read exchange t, topic-read t key",
        {"queue": "q", **_TOPIC},
        before=(("queue.bind", {"queue": "q", **_TOPIC}),),
    ),
    Row("queue.purge", "", "read queue q", {"queue": "q"}),
    Row("queue.delete", "", "configure queue q", {"queue": "q"}),
    Row("exchange.declare", "", "configure exchange new", {"exchange": "new", "type": "direct"}),
    Row("exchange.declare", "existing", "configure exchange y", {"exchange": "y", "type": "direct"}),
    Row("exchange.declare", "passive", "any exchange x", {"exchange": "x", "passive": True}),
    Row("exchange.declare", "alternate exchange", f"{_ELSE} y", {**_NEW, "arguments": _ELSE_Y}),
    Row(
        "exchange.declare",
        "the default exchange as alternate exchange",
        f"{_ELSE} amq.default",
        {**_NEW, "arguments": _ELSE_DEFAULT},
    ),
    Row("exchange.delete", "", "configure exchange x", {"exchange": "x"}),
    Row("basic.publish", "", "write exchange y", _Y, {}),
    Row("basic.publish", "default exchange", _TO_QUEUES, {"routing_key": "q"}, {}),
    Row("basic.publish", "exchange binding", "write exchange x", {"exchange": "x", "routing_key": "k"}, {}),
    Row("basic.publish", "alternate exchange", "write exchange x", {"exchange": "x", "routing_key": "-"}, {}),
    Row("basic.publish", "topic", "write exchange t, topic-write t key", _TOPIC, {}),
    Row("basic.publish", "transaction", "write exchange y", _Y, {}, before=(("tx.select", {}),)),
    Row("basic.consume", "", "read queue q", {"queue": "q"}),
    Row("basic.get", "", "read queue q", {"queue": "q"}),
    Row("basic.reject", "dead letters", "", _REJECTED, **_HOLDING),
]
"""Methods of 0-9-1 and of 0-9."""

ONLY_0_9_1: list[Row] = [
    Row("exchange.bind", "", "write exchange y, read exchange x", {"destination": "y", "source": "x"}),
    Row(
        "exchange.bind",
        "topic",
        "write exchange y, read exchange t, topic-read t key",
        {**_X_TO_Y, "source": "t", "routing_key": "key"},
    ),
    Row(
        "exchange.unbind",
        "",
        "write exchange y, read exchange x",
        {"destination": "y", "source": "x", "routing_key": "k"},
    ),
    Row("basic.consume", "replies", "", {"queue": _REPLIES, "no_ack": True}, only="rabbitmq"),
    Row(
        "basic.publish",
        "asking for replies",
        "write exchange y",
        _Y,
        {"reply_to": _REPLIES},
        before=(("basic.consume", {"queue": _REPLIES, "no_ack": True}),),
        only="rabbitmq",
    ),
    Row("basic.publish", "a reply", _TO_QUEUES, {"routing_key": f"{_REPLIES}.none"}, {}, only="rabbitmq"),
    Row(
        "basic.publish",
        "copies by the default exchange",
        _TO_QUEUES,
        {"routing_key": "none"},
        {"headers": {"CC": ["q"]}},
        only="rabbitmq",
    ),
    Row(
        "basic.publish",
        "copies by a topic exchange",
        "write exchange t, topic-write t key, topic-write t copy",
        _TOPIC,
        {"headers": {"BCC": ["copy"]}},
        only="rabbitmq",
    ),
    Row("basic.nack", "dead letters", "", _REJECTED, **_HOLDING),
    Row("basic.publish", "confirmed", "write exchange y", _Y, {}, before=(("confirm.select", {}),)),
]

_STAGED = (("file.open", {"identifier": "f"}), ("file.stage", {}))
_REFERENCE = Body(b"r", by_reference=True)
ONLY_0_9: list[Row] = [
    Row("exchange.bound", "exchange", "any exchange x", {"exchange": "x"}),
    Row("exchange.bound", "queue", "any queue q", {"exchange": "x", "queue": "q"}, also="read exchange x"),
    Row("file.consume", "", "read queue q", {"queue": "q"}),
    Row("file.publish", "", "write exchange y", {"exchange": "y", "identifier": "f"}, before=_STAGED),
    Row("file.publish", "default exchange", _TO_QUEUES, {"identifier": "f"}, before=_STAGED),
    Row(
        "file.publish",
        "topic",
        "write exchange t, topic-write t key",
        {**_TOPIC, "identifier": "f"},
        before=_STAGED,
    ),
    Row("stream.consume", "", "read queue q", {"queue": "q"}),
    Row("stream.publish", "", "write exchange y", {"exchange": "y"}, {}),
    Row("stream.publish", "default exchange", _TO_QUEUES, {"routing_key": "q"}, {}),
    Row("stream.publish", "topic", "write exchange t, topic-write t key", _TOPIC, {}),
    Row("message.transfer", "", "write exchange y", {"destination": "y", "body": Body(b"m")}),
    Row("message.transfer", "default exchange", _TO_QUEUES, {"routing_key": "q", "body": Body(b"m")}),
    Row(
        "message.transfer",
        "topic",
        "write exchange t, topic-write t key",
        {"destination": "t", "routing_key": "key", "body": Body(b"m")},
    ),
    Row(
        "message.transfer",
        "by reference",
        "write exchange y",
        {"destination": "y", "body": _REFERENCE},
        before=(("message.open", {"reference": b"r"}),),
    ),
    Row("message.consume", "", "read queue q", {"queue": "q", "destination": "c"}),
    Row("message.get", "", "read queue q", {"queue": "q", "destination": "c"}),
]

_Q = {"queue": "q", "destination": "c", "accept_mode": 0, "acquire_mode": 0}
_TRANSFER = {"accept_mode": 1, "acquire_mode": 0}
_TO_X_0_10, _TO_Y_0_10 = {"destination": "x", **_TRANSFER}, {"destination": "y", **_TRANSFER}
COMMANDS_0_10: list[Row] = [
    Row("queue.declare", "", "configure queue new", {"queue": "new"}),
    Row("queue.declare", "existing", "configure queue q", {"queue": "q"}),
    Row("queue.declare", "passive", "any queue q", {"queue": "q", "passive": True}),
    Row("queue.declare", "alternate exchange", f"{_DEAD} y", {"queue": "new", "alternate_exchange": "y"}),
    Row("queue.declare", "dead letters", f"{_DEAD} x", {"queue": "new", "arguments": _TO_X}),
    Row(
        "queue.declare",
        "dead letters to the default exchange",
        f"{_DEAD} amq.default",
        {"queue": "new", "arguments": _TO_DEFAULT},
    ),
    Row("queue.query", "", "any queue q", {"queue": "q"}),
    Row("queue.purge", "", "read queue q", {"queue": "q"}),
    Row("queue.delete", "", "configure queue q", {"queue": "q"}),
    Row("exchange.declare", "", "configure exchange new", {"exchange": "new", "type": "direct"}),
    Row("exchange.declare", "existing", "configure exchange y", {"exchange": "y", "type": "direct"}),
    Row("exchange.declare", "passive", "any exchange x", {"exchange": "x", "passive": True}),
    Row("exchange.declare", "alternate exchange", f"{_ELSE} y", {**_NEW, "alternate_exchange": "y"}),
    Row(
        "exchange.declare",
        "alternate exchange in the arguments",
        "configure exchange new, read exchange new, write exchange x, write exchange y",
        {**_NEW, "alternate_exchange": "x", "arguments": _ELSE_Y},
    ),
    Row(
        "exchange.declare",
        "the default exchange as alternate exchange",
        f"{_ELSE} amq.default",
        {**_NEW, "arguments": _ELSE_DEFAULT},
    ),
    Row("exchange.query", "", "any exchange x", {"name": "x"}),
    Row("exchange.delete", "", "configure exchange x", {"exchange": "x"}),
    Row(
        "exchange.bind",
        "",
        "write queue q, read exchange y",
        {"queue": "q", "exchange": "y", "binding_key": "k"},
    ),
    Row(
        "exchange.bind",
        "topic",
        "write queue q, read exchange t, topic-read t key",
        {"queue": "q", "exchange": "t", "binding_key": "key"},
    ),
    Row(
        "exchange.unbind",
        "",
        "write queue q, read exchange x",
        {"queue": "q", "exchange": "x", "binding_key": "k"},
    ),
    Row("exchange.bound", "exchange", "any exchange x", {"exchange": "x"}),
    Row("exchange.bound", "queue", "any queue q", {"exchange": "x", "queue": "q"}, also="read exchange x"),
    Row("message.transfer", "", "write exchange y", _TO_Y_0_10, {"routing_key": "k"}),
    Row("message.transfer", "default exchange", _TO_QUEUES, _TRANSFER, {"routing_key": "q"}),
    Row("message.transfer", "exchange binding", "write exchange x", _TO_X_0_10, {"routing_key": "k"}),
    Row("message.transfer", "alternate exchange", "write exchange x", _TO_X_0_10, {"routing_key": "-"}),
    Row(
        "message.transfer",
        "topic",
        "write exchange t, topic-write t key",
        {"destination": "t", **_TRANSFER},
        {"routing_key": "key"},
    ),
    Row(
        "message.transfer",
        "transaction",
        "write exchange y",
        _TO_Y_0_10,
        {"routing_key": "k"},
        before=(("tx.select", {}),),
    ),
    Row("message.subscribe", "", "read queue q", _Q),
    Row("message.subscribe", "browsing", "read queue q", {**_Q, "acquire_mode": 1}),
    Row("file.consume", "", "read queue q", {"queue": "q", "consumer_tag": "c"}),
    Row("file.publish", "", "write exchange y", {"exchange": "y", "identifier": "f"}, before=_STAGED),
    Row("file.publish", "default exchange", _TO_QUEUES, {"identifier": "f"}, before=_STAGED),
    Row(
        "file.publish",
        "topic",
        "write exchange t, topic-write t key",
        {**_TOPIC, "identifier": "f"},
        before=_STAGED,
    ),
    Row("stream.consume", "", "read queue q", {"queue": "q", "consumer_tag": "c"}),
    Row("stream.publish", "", "write exchange y", _Y, {}),
    Row("stream.publish", "default exchange", _TO_QUEUES, {"routing_key": "q"}, {}),
    Row("stream.publish", "topic", "write exchange t, topic-write t key", _TOPIC, {}),
]

_NO_RIGHT = {
    "of the connection: login and right to the virtual host": """
        connection.start-ok connection.secure-ok connection.tune-ok connection.open connection.close
        connection.close-ok connection.update-secret
        """,
    "only what the channel or session has of its own": """
        channel.open channel.flow channel.flow-ok channel.close channel.close-ok channel.ping channel.pong
        channel.ok basic.qos basic.cancel basic.cancel-ok basic.ack basic.reject basic.nack
        basic.recover-async basic.recover basic.recover-sync confirm.select tx.select tx.commit tx.rollback
        file.qos file.cancel file.open file.open-ok file.stage file.ack file.reject stream.qos stream.cancel
        message.cancel message.recover message.open message.close message.append message.checkpoint
        message.resume message.qos message.ok message.empty message.reject message.offset message.accept
        message.release message.acquire message.set-flow-mode message.flow message.flush message.stop
        execution.sync execution.result execution.exception dtx.select dtx.end
        """,
    "only branches of the same user: see the tests of class dtx": """
        dtx.start dtx.commit dtx.forget dtx.get-timeout dtx.prepare dtx.recover dtx.rollback dtx.set-timeout
        """,
    "rights of realms: see the tests of class access": "access.request",
    "channels of the same user only, and consumers of queues that it may still read": "channel.resume",
    "a function of the test gets it, not a queue": "tunnel.request",
}
NO_RIGHT = {name for names in _NO_RIGHT.values() for name in names.split()}
"""Methods that need no right on any name."""

METHODS: dict[str, dict[str, type[Any]]] = {
    "0-9-1": {each.NAME: each for each in m.METHODS.values()},
    "0-9": {each.NAME: each for each in METHODS_0_9.values()},
    "0-10": {each.NAME: each for each in COMMANDS.values()},
}
ROWS: dict[tuple[str, str], list[Row]] = {
    ("0-9-1", "rabbitmq-4.3"): [*BOTH, *ONLY_0_9_1],
    ("0-9-1", "spec"): [*BOTH, *ONLY_0_9_1],
    ("0-9", "rabbitmq-4.3"): [*BOTH, *ONLY_0_9_1, *ONLY_0_9],
    ("0-9", "letter of rabbitmq-4.3"): [*BOTH, *ONLY_0_9],
    ("0-9", "spec"): [*BOTH, *ONLY_0_9],
    ("0-10", "rabbitmq-4.3"): COMMANDS_0_10,
    ("0-10", "spec"): COMMANDS_0_10,
}
"""By protocol and personality."""


# --- what is tried ---------------------------------------------------------------------------------------
class Need(NamedTuple):
    """One right: "configure", "write", "read", "any", "topic-write" or "topic-read"."""

    right: str
    kind: str
    name: str

    @property
    def pattern(self) -> str:
        return re.escape(self.name).replace(r"\*", ".*")

    def denied(self) -> str:
        """The beginning of what a user is told who lacks it."""
        name = self.name.rstrip("*")
        if self.right.startswith("topic-"):
            return f"{self.right[6:]} access to topic '{name}' in exchange '{self.kind}'"
        return f"{'configure' if self.right == 'any' else self.right} access to {self.kind} '{name}"


def needs(text: str) -> list[Need]:
    return [Need(*each.split()) for each in text.split(", ")] if text else []


Rights: TypeAlias = tuple[dict[str, Permission], dict[tuple[str, str], TopicPermission]]
RIGHTS = ("configure", "write", "read")
ALL: Rights = ({"/": Permission()}, {})


def only(rights: Iterable[Need]) -> Rights:
    """These rights, and none besides; any one of three is that to read."""
    patterns: dict[str, list[str]] = {right: [] for right in RIGHTS}
    topics: dict[str, dict[str, list[str]]] = {}
    for right, kind, name in rights:
        need = Need(right, kind, name)
        if right.startswith("topic-"):
            topic = topics.setdefault(kind, {"write": [], "read": []})
            topic[right[6:]].append(need.pattern)
        else:
            patterns["read" if right == "any" else right].append(need.pattern)
    return _granted(
        {right: _one_of(names) for right, names in patterns.items()},
        {name: {right: _one_of(keys) for right, keys in each.items()} for name, each in topics.items()},
    )


def _one_of(patterns: list[str]) -> str:
    return f"^({'|'.join(patterns)})$" if patterns else "^$"


def all_but(missing: Need) -> Rights:
    """All rights but this one."""
    other = f"^(?!{missing.pattern}$)"
    if missing.right.startswith("topic-"):
        return _granted({}, {missing.kind: {missing.right[6:]: other}})
    lacking = RIGHTS if missing.right == "any" else (missing.right,)
    return _granted(dict.fromkeys(lacking, other), {})


def _granted(patterns: Mapping[str, str], topics: Mapping[str, Mapping[str, str]]) -> Rights:
    keys = {("/", exchange): TopicPermission(**each) for exchange, each in topics.items()}
    return {"/": Permission(**patterns)}, keys


class Trial:
    """A user on a new broker."""

    def __init__(self, protocol: str, personality: str, rights: Rights) -> None:
        self.protocol = protocol
        self.server: BaseServer
        if protocol == "0-10":
            self.server = Server(personality)
        elif protocol == "0-9":
            base = personality.removeprefix("letter of ")
            followed = letter_of(base) if base != personality else base
            self.server = FramedServer(followed, tickets=personality == "spec")
        else:
            self.server = BaseServer(personality)
        self._furnish()
        self.user = User("ann", "secret", (), *rights)
        self.server.state.access.add(self.user)
        login = {"user": "ann", "password": "secret"}
        self.session: Session | None = None
        self.client: BaseClient | None = None
        if isinstance(self.server, Server):
            self.session = self.server.session(**login)
        else:
            self.client = self.server.client(**login)
            self.requester = Requester(self.client) if isinstance(self.client, Client) else None
        self.problems: list[tuple[int, str]] = []

    def _furnish(self) -> None:
        vhost = self.server.vhost
        for name in ("x", "y"):
            alternate = {"alternate-exchange": "y"} if name == "x" else {}
            vhost.exchanges.declare(name, "direct", arguments=alternate)
        vhost.exchanges.declare("t", "topic")
        for name, arguments in (("q", {}), ("d", {"x-dead-letter-exchange": "y"})):
            queue = vhost.queues.declare(name, QueueDeclaration(arguments=arguments))
            vhost.publish(Message("", name, BasicProperties(), b"m"))
        vhost.bindings.bind("x", vhost.queues["q"], "k", {})
        vhost.bindings.bind("x", vhost.exchanges["y"], "k", {})
        assert len(queue.ready) == 1

    def state(self) -> object:
        """All that a method without a right must not change."""
        vhost = self.server.vhost
        return (
            {name: (len(each.ready), len(each.subscriptions)) for name, each in vhost.queues.items()},
            {name: len(each.bindings) for name, each in vhost.exchanges.items()},
            vhost.branches.views(),
        )

    def take(self, row: Row, *, lacking: Need | None = None) -> None:
        """Do what the row says; the user loses a right before the last step."""
        for name, fields in row.before:
            self.send(name, fields)
        if lacking is not None:
            self.user.permissions, self.user.topic_permissions = all_but(lacking)
            self.server.state.access.changed()
            if self.client is not None and self.server.asks_for_tickets:
                self.client.ask_for_ticket(1)  # A change of rights ends tickets.
        self.before = self.state()
        self.send(row.method, row.fields, row.headers)

    def send(self, name: str, fields: Mapping[str, Any], headers: Mapping[str, Any] | None = None) -> None:
        """Send a method, and take note of what is wrong with it."""
        if self.session is not None:
            self._command(COMMANDS_BY_NAME[name](**fields), headers)
            return
        assert self.client is not None
        kind = METHODS[self.protocol].get(name) or METHODS["0-9-1"][name]
        method = kind(**fields)
        if name.startswith("message.") and self.requester is not None:
            self.requester.ask(method)
        elif kind.HAS_CONTENT:
            properties = BasicProperties(**(headers or {})).encode()
            frames = content_frames(1, kind.CLASS_ID, properties, b"", 4000)
            self.client.send_bytes(self.client.method_frame(method) + b"".join(frames))
        else:
            self.client.send(method, 0 if name.startswith("connection.") else 1)
        while self.client.inbox:
            self._note(self.client.take_frame().method)

    def _note(self, method: Method | None) -> None:
        if method is not None and method.NAME in ("channel.close", "connection.close"):
            assert isinstance(method, (m.ChannelClose, m.ConnectionClose)) or hasattr(method, "reply_code")
            self.problems.append((method.reply_code, method.reply_text))  # type: ignore[attr-defined]

    def _command(self, command: Command, headers: Mapping[str, Any] | None) -> None:
        assert self.session is not None
        content: dict[str, Any] = {}
        if headers is not None and command.NAME == "message.transfer":
            content = {"header": [structs.DeliveryProperties(**headers)], "body": b""}
        elif command.NAME == "file.stage":
            content = {"header": [structs.FileProperties()], "body": b""}
        elif headers is not None:
            content = {"header": [structs.StreamProperties()], "body": b""}
        try:
            self.session.call(command, **content)
        except SessionFailed as problem:
            self.problems.append((problem.code or 0, problem.exception.description or ""))


COMMANDS_BY_NAME = METHODS["0-10"]


@cache
def tried(protocol: str, personality: str) -> list[tuple[Row, list[Need]]]:
    """The rows of a personality, with what it needs."""
    rows = [row for row in ROWS[protocol, personality] if row.only in personality]
    trial = Trial(protocol, personality, ALL)
    asks = trial.server.state.personality.passive_declare_needs_permission
    return [(row, [need for need in needs(row.needs) if need.right != "any" or asks]) for row in rows]


def refused(trial: Trial, row: Row, missing: Need) -> None:
    """Do what the row says without one right: it is refused, and nothing has changed."""
    trial.take(row, lacking=missing)
    [(code, text)] = trial.problems
    assert code == 403
    assert missing.denied() in text
    assert text.endswith("refused for user 'ann'")
    assert trial.state() == trial.before


@pytest.mark.parametrize(("protocol", "personality"), ROWS, ids=[" ".join(each) for each in ROWS])
class TestRights:
    @pytest.mark.needs("inspection", "settings")
    def test_methods_succeed_with_exactly_the_rights_of_their_row(
        self, protocol: str, personality: str
    ) -> None:
        with cases() as case:
            for row, needed in tried(protocol, personality):
                with case(row.method, row.way):
                    trial = Trial(protocol, personality, only([*needed, *needs(row.also)]))
                    trial.take(row)
                    assert trial.problems == []

    @pytest.mark.needs("inspection", "settings")
    def test_method_lacking_one_of_its_rights_is_refused_with_403(
        self, protocol: str, personality: str
    ) -> None:
        with cases() as case:
            for row, needed in tried(protocol, personality):
                for missing in needed:
                    with case(row.method, row.way, *missing):
                        refused(Trial(protocol, personality, ALL), row, missing)

    @pytest.mark.needs("inspection", "settings")
    def test_methods_that_need_no_right_change_no_queue_or_exchange_for_user_without_rights(
        self, protocol: str, personality: str
    ) -> None:
        with cases() as case:
            for name, kind in METHODS[protocol].items():
                if name in NO_RIGHT and "server" in kind.RECEIVED_BY and not name.startswith("connection."):
                    with case(name):
                        trial = Trial(protocol, personality, only([]))
                        before = trial.state()
                        trial.send(name, {})
                        assert trial.state() == before


@pytest.mark.needs("own broker")
@pytest.mark.parametrize("protocol", METHODS)
def test_every_method_has_a_row_or_needs_no_right(protocol: str) -> None:
    received = {name for name, each in METHODS[protocol].items() if "server" in each.RECEIVED_BY}
    rows = {row.method for (each, _), rows in ROWS.items() if each == protocol for row in rows}
    needing = {
        row.method for (each, _), rows in ROWS.items() if each == protocol for row in rows if row.needs
    }
    assert received - rows - NO_RIGHT == set(), "give each a row, or a reason why it needs no right"
    assert needing & NO_RIGHT == set()
