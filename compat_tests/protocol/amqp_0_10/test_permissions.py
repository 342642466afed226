"""Who may do what with queues and exchanges, within which limits, and what the tap is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compat_tests.protocol.amqp_0_10.test_exchange import refused
from compat_tests.scripted.amqp_0_9_1 import QuietTap
from compat_tests.scripted.amqp_0_10 import Server, Session, SessionFailed
from fakeamqp.model.access import Permission, TopicPermission, User
from fakeamqp.model.limits import VirtualHostLimits
from fakeamqp.model.personality import personality
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.structs import Command

NAMES = ("c", "w", "r", "cwr", "none")


def login(server: Server, **patterns: str) -> Session:
    """A session of ann, who may configure what has a c in its name, write a w, and read an r."""
    granted = {"configure": "c", "write": "w", "read": "r"} | patterns
    server.state.access.add(User("ann", "secret", (), {"/": Permission(**granted)}))
    name = f"ann's {len(server.state.sessions)}th".encode()
    return server.session(name, user="ann", password="secret")


def denied(server: Server, command: Command, **patterns: str) -> str:
    """ann may not; why she may not."""
    exception = login(server, **patterns).fails(command, 403)
    assert (exception.class_code, exception.command_code) == (command.CLASS, command.CODE)
    return exception.description or ""


@pytest.fixture
def server(server: Server) -> Server:
    """With queues and direct exchanges of every name."""
    guest = server.session()
    for name in NAMES:
        guest.declare(name).declare_exchange(name)
    return server


BY_ACTION: list[tuple[str, str, Any]] = [
    ("configure", "queue", x.QueueDeclare),
    ("configure", "queue", x.QueueDelete),
    ("read", "queue", x.QueuePurge),
    ("configure", "exchange", x.ExchangeDeclare),
    ("configure", "exchange", x.ExchangeDelete),
]


@pytest.mark.parametrize(("action", "kind", "make"), BY_ACTION, ids=[each[2].NAME for each in BY_ACTION])
@pytest.mark.parametrize("name", NAMES)
def test_queue_and_exchange_commands_require_their_permission(
    server: Server, action: str, kind: str, make: Any, name: str
) -> None:
    command = make(**{kind: name}, **({"type": "direct"} if make is x.ExchangeDeclare else {}))
    if action[0] in name.replace("none", ""):
        login(server).call(command)
    else:
        assert denied(server, command).startswith(f"{action} access to {kind} '{name}' in vhost '/' refused")


@pytest.mark.parametrize("make", [x.ExchangeBind, x.ExchangeUnbind])
def test_bind_and_unbind_require_write_on_queue_and_read_on_exchange(server: Server, make: Any) -> None:
    if make is x.ExchangeUnbind:
        server.session(b"guest's").bind("w", "r", "k")
    login(server).perform(make(queue="w", exchange="r", binding_key="k"))
    assert "write access to queue 'r'" in denied(server, make(queue="r", exchange="r", binding_key="k"))
    assert "read access to exchange 'w'" in denied(server, make(queue="w", exchange="w", binding_key="k"))
    assert "write access to queue 'x'" in denied(server, make(queue="x", exchange="x", binding_key="k"))


def test_bind_to_topic_exchange_requires_read_permission_for_key(server: Server) -> None:
    session = login(server, read=".*")
    ann = server.state.access.users["ann"]
    ann.topic_permissions["/", "amq.topic"] = TopicPermission(read="^a")
    server.state.access.changed()
    session.perform(x.ExchangeBind(queue="w", exchange="amq.topic", binding_key="a.b"))
    session.fails(x.ExchangeBind(queue="w", exchange="amq.topic", binding_key="b.a"), 403)


@pytest.mark.parametrize("kind", ["queue", "exchange"])
def test_alternate_exchange_needs_write_on_it_and_read_on_declared_entity(server: Server, kind: str) -> None:
    def declare(name: str, alternate: str) -> Command:
        if kind == "queue":
            return x.QueueDeclare(queue=name, alternate_exchange=alternate)
        return x.ExchangeDeclare(exchange=name, type="direct", alternate_exchange=alternate)

    login(server).perform(declare("cr2", "w"))
    assert "write access to exchange 'r'" in denied(server, declare("cr3", "r"))
    assert f"read access to {kind} 'c2'" in denied(server, declare("c2", "w"))
    assert not {"cr3", "c2"} & {*server.vhost.queues, *server.vhost.exchanges}


def test_dead_letter_exchange_requires_write_on_exchange_and_read_on_queue(server: Server) -> None:
    login(server).perform(x.QueueDeclare(queue="cr2", arguments={"x-dead-letter-exchange": "w"}))
    denied(server, x.QueueDeclare(queue="cr3", arguments={"x-dead-letter-exchange": "r"}))
    denied(server, x.QueueDeclare(queue="c2", arguments={"x-dead-letter-exchange": "w"}))


def test_default_exchange_in_arguments_requires_write_on_amq_default(server: Server) -> None:
    for command in (
        x.QueueDeclare(queue="cr2", arguments={"x-dead-letter-exchange": ""}),
        x.QueueDeclare(queue="cr2", arguments={"x-dead-letter-exchange": b""}),
        x.ExchangeDeclare(exchange="cr2", type="direct", arguments={"alternate-exchange": ""}),
    ):
        assert "write access to exchange 'amq.default'" in denied(server, command)
        login(server, write="w|^amq.default$").call(command)
        server.vhost.queues.pop("cr2", None)


def test_alternate_exchange_argument_requires_write_beside_alternate_exchange_field(server: Server) -> None:
    arguments = {"alternate-exchange": "none"}
    command = x.ExchangeDeclare(exchange="cr2", type="direct", alternate_exchange="w", arguments=arguments)
    assert "write access to exchange 'none'" in denied(server, command)


ASKING: list[Any] = [
    lambda name: x.QueueQuery(queue=name),
    lambda name: x.QueueDeclare(queue=name, passive=True),
    lambda name: x.ExchangeQuery(name=name),
    lambda name: x.ExchangeDeclare(exchange=name, passive=True),
    lambda name: x.ExchangeBound(exchange=name),
    lambda name: x.ExchangeBound(exchange="cwr", queue=name),
]


@pytest.mark.parametrize("make", ASKING, ids=lambda make: make("").NAME)
@pytest.mark.parametrize("needed", [False, True])
def test_query_and_passive_declaration_need_any_permission_by_personality(make: Any, needed: bool) -> None:
    server = Server(replace(personality("rabbitmq-4.2"), passive_declare_needs_permission=needed))
    guest = server.session()
    for name in NAMES:
        guest.declare(name).declare_exchange(name)
    session = login(server)
    for name in ("c", "w", "r"):
        session.perform(make(name))
    if needed:
        session.fails(make("none"), 403)
    else:
        session.perform(make("none"))


def test_permission_is_checked_before_existence(server: Server) -> None:
    for command in (x.QueueDelete(queue="x"), x.QueuePurge(queue="x"), x.ExchangeDelete(exchange="x")):
        denied(server, command)


# --- limits ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.2", "spec"])
def test_queue_above_limit_of_virtual_host_fails_with_506(name: str) -> None:
    server = Server(name)
    session = server.session().declare("a")
    server.vhost.limits = VirtualHostLimits(max_queues=1)
    session.declare("a")
    with pytest.raises(SessionFailed, match=r"queue limit in vhost '/' \(1\) is reached") as caught:
        session.declare("b")
    assert caught.value.code == 506
    assert "b" not in server.vhost.queues


# --- what the tap is told ----------------------------------------------------------------------------
class Notes(QuietTap):
    """Keeps what happens to entities."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def happened(self, event: str, **facts: Any) -> None:
        self.events.append((event, facts))

    def of(self, event: str) -> dict[str, Any]:
        """The facts of the only such event."""
        (found,) = [facts for name, facts in self.events if name == event]
        return found


def test_tap_receives_events_of_queues_exchanges_and_bindings(lenient: Server) -> None:
    session = lenient.session()
    connection = session.end.connection_name
    tap = lenient.state.tap = Notes()
    session.declare("q").declare_exchange("e").bind("q", "e", "k")
    session.publish(key="q").perform(x.QueuePurge(queue="q"))
    session.perform(x.ExchangeUnbind(queue="q", exchange="e", binding_key="k"))
    session.perform(x.ExchangeDelete(exchange="e")).perform(x.QueueDelete(queue="q"))
    assert tap.of("queue declared").items() >= {"queue": "q", "connection": connection}.items()
    assert tap.of("exchange declared").items() >= {"exchange": "e", "type": "direct"}.items()
    binding = {"queue": "q", "exchange": "e", "routing_key": "k"}
    assert tap.of("bound").items() >= binding.items()
    assert tap.of("unbound").items() >= binding.items()
    purged = {"queue": "q", "messages": 1, "connection": connection, "channel": 0}
    assert tap.of("queue purged").items() >= purged.items()
    assert tap.of("exchange deleted")["exchange"] == "e"
    assert tap.of("queue deleted")["queue"] == "q"


def test_refused_declaration_creates_no_queue_or_exchange(server: Server) -> None:
    before = (dict(server.vhost.queues), dict(server.vhost.exchanges))
    client = server.open()
    refused(client, x.QueueDeclare(queue="new", alternate_exchange="missing"), 404, "alternate_exchange")
    refused(
        client,
        x.ExchangeDeclare(exchange="new", type="direct", alternate_exchange="missing"),
        404,
        "alternate_exchange",
    )
    assert (server.vhost.queues, server.vhost.exchanges) == before
