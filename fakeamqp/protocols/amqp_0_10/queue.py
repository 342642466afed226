"""Class queue: declare, delete, purge, query. Class exchange binds (queue/grammar).

All of them raise AccessRefused for what the user may not do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fakeamqp.model.errors import PreconditionFailed, ResourceLocked
from fakeamqp.model.limits import check_queue_limit
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.model.queues.qpid import QpidQueue, are_asked_for
from fakeamqp.model.routing import PSEUDO_QUEUE
from fakeamqp.protocols.amqp_0_10.codec import commands, structs
from fakeamqp.protocols.amqp_0_10.entities import (
    authorise_alternate,
    authorise_asking,
    bad_arguments,
    check_alternate,
    find_queue,
    plain,
    refuse_unknown_arguments,
)
from fakeamqp.protocols.amqp_0_10.properties import carried
from fakeamqp.protocols.amqp_0_10.replies import SessionFault

if TYPE_CHECKING:
    from fakeamqp.model.access import Action
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession

_LEGAL_NAME = re.compile(r"\w[^\udc80-\udcff]*", re.DOTALL)
"""It begins with a letter, a digit or an underscore; what was no UTF-8 came as lone surrogates."""


def declare(session: ServerSession, command: commands.QueueDeclare) -> None:
    """Create a queue, or confirm that it exists and that this session may use it.

    An existing queue keeps its flags and arguments (queue.declare/*-pre-existence); but a session that asks
    for exclusive access to an unused queue gets it.

    Raises:
        SessionFault: the name is no name (illegal-argument) or reserved, or the queue has another alternate
            exchange (not-allowed); the queue of a passive declare, or the alternate exchange, is not there
            (not-found); an argument cannot be acted on (invalid-argument) or is not known (not-implemented).
        ResourceLocked: another session has exclusive access, or uses what is to be exclusive.
    """
    name = command.queue or ""
    if command.passive:
        _confirm(session, name, command)
        return
    _check_name(session, name)
    session.authorise("configure", "queue", name)
    arguments = plain(command.arguments)
    known = {each for names in session.personality.queue_arguments.values() for each in names}
    refuse_unknown_arguments(session, arguments, known)
    existing = session.virtual_host.queues.get(name)
    if existing is None:
        _create(session, name, command, arguments)
        return
    existing = session.virtual_host.queues.require(name, session)
    check_alternate(session, command.alternate_exchange, existing)
    if command.exclusive and existing.exclusive_owner is None:
        _claim(session, existing)
    existing.asked_for()


def _confirm(session: ServerSession, name: str, command: commands.QueueDeclare) -> None:
    """A passive declare: arguments are ignored (queue.declare/arguments-passive).

    A session that asks for exclusive access must have it. Other sessions may, by personality, ask about the
    exclusive queue of another one, as programs do that send to a reply queue.
    """
    authorise_asking(session, "queue", name)
    queue = find_queue(session, name)
    if command.exclusive:
        if queue.exclusive_owner is not session:
            raise ResourceLocked(f"queue '{name}' is not exclusive to session '{session.display_name}'")
    elif not session.choices.confirms_exclusive_queues:
        session.virtual_host.queues.require(name, session)
    check_alternate(session, command.alternate_exchange, queue)
    queue.asked_for()


def _check_name(session: ServerSession, name: str) -> None:
    """Refuse a name that no queue can have (queue/name, queue.declare/queue-reserved-prefix)."""
    if session.choices.checks_queue_names and not _LEGAL_NAME.fullmatch(name):
        raise SessionFault("illegal-argument", f"'{name}' is no name for a queue", "queue")
    replies = session.personality.direct_reply_to and name.startswith(PSEUDO_QUEUE)
    if replies or (session.choices.reserves_queue_names and name.startswith("amq.")):
        raise SessionFault("not-allowed", f"queue name '{name}' is reserved", "queue")


def _create(
    session: ServerSession, name: str, command: commands.QueueDeclare, arguments: dict[str, Any]
) -> None:
    """Create the queue; the end of its session frees or deletes an exclusive one (queue.declare/exclusive-*).

    Deprecated features that the personality denies to 0-9-1 do not concern 0-10.
    """
    alternate = command.alternate_exchange or None
    check_alternate(session, alternate)
    authorise_alternate(session, "queue", name, alternate, arguments.get("x-dead-letter-exchange"))
    try:
        check_queue_limit(session.virtual_host, name)
    except PreconditionFailed as problem:
        raise SessionFault("resource-limit-exceeded", problem.text) from problem
    with bad_arguments():
        session.virtual_host.queues.create(
            name,
            QueueDeclaration(
                owner=session,
                durable=command.durable,
                exclusive=command.exclusive,
                auto_delete=command.auto_delete,
                arguments=arguments,
                alternate_exchange=alternate,
                freeable=True,
            ),
            permits_all=True,
            special=QpidQueue if are_asked_for(arguments) else None,
        )


def _claim(session: ServerSession, queue: Queue) -> None:
    """Give this session exclusive access to an existing shared queue, unless others use it."""
    if queue.replicated or any(each.owner is not session for each in queue.subscriptions):
        raise ResourceLocked(f"queue '{queue.name}' cannot be exclusive, since others use it")
    session.virtual_host.queues.claim(queue, session)
    queue.freeable = True


def delete(session: ServerSession, command: commands.QueueDelete) -> None:
    """Delete a queue; its messages go to its alternate exchange, if it has one (queue.delete/orphans)."""
    name = _named(session, command.queue, "configure", session.choices.deleting_unnamed_queue)
    session.virtual_host.queues.delete(name, session, if_unused=command.if_unused, if_empty=command.if_empty)


def _named(session: ServerSession, name: str | None, action: Action, missing: str) -> str:
    """The name of a queue that is there and that the user may use; `missing` is the condition without one."""
    if not name:
        raise SessionFault(missing, "no queue is named", "queue")
    session.authorise(action, "queue", name)
    find_queue(session, name)
    return name


def purge(session: ServerSession, command: commands.QueuePurge) -> None:
    """Drop all ready messages; sessions keep those they hold (queue.purge/pending-messages)."""
    name = _named(session, command.queue, "read", session.choices.missing_queue_name)
    count = session.virtual_host.queues.require(name, session).purge()
    session.virtual_host.report(
        "queue purged",
        queue=name,
        messages=count,
        connection=session.connection_name,
        channel=session.channel,
    )


def query(session: ServerSession, command: commands.QueueQuery) -> structs.QueueQueryResult:
    """Describe a queue and count its ready messages; no fields for a missing one (queue.query/missing).

    Messages that sessions have acquired do not count.
    """
    name = command.queue or ""
    authorise_asking(session, "queue", name)
    queue = session.virtual_host.queues.get(name)
    if queue is None:
        return structs.QueueQueryResult()
    return structs.QueueQueryResult(
        queue=name,
        alternate_exchange=queue.alternate_exchange,
        durable=queue.durable,
        exclusive=queue.exclusive_owner is not None,
        auto_delete=queue.auto_delete,
        arguments=carried(queue.arguments),
        message_count=len(queue.ready),
        subscriber_count=len(queue.subscriptions),
    )
