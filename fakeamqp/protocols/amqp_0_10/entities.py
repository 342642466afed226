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
    """The exchange of that name; `field` is the field that names it.

    Raises:
        SessionFault: there is none (not-found).
    """
    found = session.virtual_host.exchanges.get(name)
    if found is None:
        raise SessionFault("not-found", f"there is no exchange '{name}'", field)
    return found


def find_queue(session: ServerSession, name: str) -> Queue:
    """The queue of that name, for any session to inspect.

    Raises:
        SessionFault: there is none (not-found).
    """
    found = session.virtual_host.queues.get(name)
    if found is None:
        raise SessionFault("not-found", f"there is no queue '{name}'", "queue")
    return found


def check_alternate(
    session: ServerSession, asked: str | None, existing: Exchange | Queue | None = None
) -> None:
    """Refuse an alternate exchange that does not exist, or differs from that of the existing entity.

    None and the empty name request none (exchange.declare/alternate-exchange-empty-name).

    Raises:
        SessionFault: it is another one (queue.declare/alternate-exchange-pre-existing-exchange: not-allowed);
            there is no such exchange (queue.declare/alternate-exchange-unknown-exchange: not-found).
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
    """Refuse to tell a user without any permission on the name whether the entity exists.

    Raises:
        AccessRefused: the user has none, where the personality requires one.
    """
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
    """Refuse exchanges that the user may not route the messages of a queue or an exchange to.

    They are named by the field of a command, `alternate`, and by an `argument`.

    Raises:
        AccessRefused: no.
    """
    for target in (alternate, argument):
        if isinstance(target, str):
            session.authorise("read", kind, name)
            session.authorise("write", "exchange", target)


def refuse_unknown_arguments(
    session: ServerSession, arguments: Mapping[str, Any], known: Collection[str]
) -> None:
    """Refuse unknown arguments, where the personality does.

    Raises:
        SessionFault: an argument is unknown (exchange.declare/arguments-unknown-argument: not-implemented).
    """
    if session.choices.refuses_unknown_arguments:
        unknown = sorted(name for name in arguments if name not in known)
        if unknown:
            raise SessionFault("not-implemented", f"argument '{unknown[0]}' is unknown", "arguments")


@contextmanager
def bad_arguments() -> Iterator[None]:
    """Turn the model's refusals of arguments into invalid-argument.

    Raises:
        SessionFault: in place of PreconditionFailed, which in 0-10 is for if-unused and if-empty.
    """
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
