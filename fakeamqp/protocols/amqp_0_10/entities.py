"""What classes exchange and queue share: finding what a command names, and refusing what it may not do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from fakeamqp.model.errors import AccessRefused, InvalidArgument, PreconditionFailed
from fakeamqp.protocols.amqp_0_10.properties import plain_headers
from fakeamqp.protocols.amqp_0_10.replies import SessionFault

if TYPE_CHECKING:
    from collections.abc import Collection

    from fakeamqp.model.access import Action
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession


def find_exchange(session: ServerSession, name: str, field: str = "exchange") -> Exchange:
    """The exchange of that name, else not-found; `field` is the field that names it."""
    found = session.virtual_host.exchanges.get(name)
    if found is None:
        raise SessionFault("not-found", f"there is no exchange '{name}'", field)
    return found


def find_queue(session: ServerSession, name: str) -> Queue:
    """The queue of that name, for any session to inspect, else not-found."""
    found = session.virtual_host.queues.get(name)
    if found is None:
        raise SessionFault("not-found", f"there is no queue '{name}'", "queue")
    return found


def check_alternate(
    session: ServerSession, asked: str | None, existing: Exchange | Queue | None = None
) -> None:
    """Refuse an alternate exchange that differs from that of the existing entity, or does not exist.

    None and the empty name request none (exchange.declare/alternate-exchange-empty-name). The errors are
    not-allowed (queue.declare/alternate-exchange-pre-existing-exchange) and not-found
    (queue.declare/alternate-exchange-unknown-exchange).
    """
    if not asked:
        return
    if existing is None:
        find_exchange(session, asked, "alternate_exchange")
    elif existing.alternate_exchange != asked:
        has = existing.alternate_exchange
        text = "no alternate exchange" if has is None else f"alternate exchange '{has}'"
        raise SessionFault(
            "not-allowed",
            f"{existing.kind} '{existing.name}' has {text}, not '{asked}'",
            "alternate_exchange",
        )


def authorise_asking(session: ServerSession, kind: str, name: str) -> None:
    """Refuse, by personality, to tell a user without any permission whether the entity exists."""
    if not session.personality.passive_declare_needs_permission:
        return
    others: tuple[Action, ...] = ("read", "write")
    for action in others:
        try:
            session.authorise(action, kind, name)
        except AccessRefused:
            continue
        return
    session.authorise("configure", kind, name)


def authorise_alternate(
    session: ServerSession, kind: str, name: str, alternate: str | None, argument: object
) -> None:
    """Refuse exchanges, a field and an argument, that the user may not route the entity's messages to."""
    for target in (alternate, argument):
        if isinstance(target, str):
            session.authorise("read", kind, name)
            session.authorise("write", "exchange", target)


def refuse_unknown_arguments(
    session: ServerSession, arguments: Mapping[str, Any], known: Collection[str]
) -> None:
    """Refuse unknown arguments, by personality (exchange.declare/arguments-unknown-argument)."""
    if session.choices.refuses_unknown_arguments:
        unknown = sorted(name for name in arguments if name not in known)
        if unknown:
            raise SessionFault("not-implemented", f"argument '{unknown[0]}' is unknown", "arguments")


@contextmanager
def bad_arguments() -> Iterator[None]:
    """Turn refusals into invalid-argument: precondition-failed is for if-unused and if-empty in 0-10."""
    try:
        yield
    except (InvalidArgument, PreconditionFailed) as problem:
        raise SessionFault("invalid-argument", problem.text, "arguments") from problem


def plain(arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """Arguments as all versions of AMQP can carry them, with bytes that are text as text.

    Clients in languages where the two are one type send either (qpid-python decides by ASCII).
    """
    found = plain_headers(arguments or {})
    for name, value in found.items():
        if isinstance(value, bytes):
            with suppress(UnicodeDecodeError):
                found[name] = value.decode()
    return found
