"""Checks of declarations: legal names, and equivalence with an existing entity."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fakeamqp.model.arguments.exchange_arguments import COMPARED_EXCHANGE_ARGUMENTS
from fakeamqp.model.arguments.queue_arguments import QUEUE_TYPE, compared_arguments, compared_values
from fakeamqp.model.equivalence import compare_arguments, compare_flag
from fakeamqp.model.errors import InternalError, NotAllowed, PreconditionFailed

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.queues import Queue, QueueDeclaration
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = [
    "check_alternate",
    "check_name",
    "check_removed_arguments",
    "check_same_exchange",
    "check_same_queue",
]

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9\-_.:]*")


def check_name(personality: Personality, kind: str, name: str) -> None:
    """Refuse a name that is too long or has characters that the personality forbids (domain.*/pattern).

    Raises:
        PreconditionFailed: the name is illegal.
    """
    if len(name.encode("utf-8", "surrogateescape")) > personality.longest_name:
        raise PreconditionFailed(
            f"{kind} name is longer than {personality.longest_name} bytes: '{name[:60]}...'"
        )
    if personality.restricts_names and not _LEGAL_NAME.fullmatch(name):
        raise PreconditionFailed(
            f"{kind} name '{name}' holds characters other than letters, digits, '-', '_', '.' and ':'"
        )


def check_same_exchange(
    existing: Exchange,
    type_name: str,
    *,
    durable: bool,
    auto_delete: bool,
    internal: bool,
    arguments: Mapping[str, Any],
) -> None:
    """Refuse a declaration that is not equivalent to the exchange (exchange.declare/passive-equivalent).

    Raises:
        PreconditionFailed: with RabbitMQ's text, which names the first difference.
    """
    compare = ("exchange", existing.name, existing.virtual_host.name)
    compare_flag(*compare, "type", type_name, existing.type_name)
    compare_flag(*compare, "durable", durable, existing.durable)
    compare_flag(*compare, "auto_delete", auto_delete, existing.auto_delete)
    compare_flag(*compare, "internal", internal, existing.internal)
    known = existing.virtual_host.state.personality.equivalence_ignores_unknown_arguments
    compare_arguments(*compare, arguments, existing.arguments, COMPARED_EXCHANGE_ARGUMENTS if known else None)


def check_same_queue(existing: Queue, declaration: QueueDeclaration) -> None:
    """Refuse a declaration that is not equivalent to the queue (queue.declare/passive-equivalent).

    Exclusive queues are never durable, so the flag is not compared for them.

    Raises:
        PreconditionFailed: with RabbitMQ's text, which names the first difference.
    """
    personality = existing.virtual_host.state.personality
    compare = ("queue", existing.name, existing.virtual_host.name)
    if existing.exclusive_owner is None:
        compare_flag(*compare, "durable", declaration.durable, existing.durable)
    if personality.compares_auto_delete:
        compare_flag(*compare, "auto_delete", declaration.auto_delete, existing.auto_delete)
    considered: Iterable[str] | None = None
    if personality.equivalence_ignores_unknown_arguments:
        considered = compared_arguments(existing.type_name, personality)
    received = compared_values(declaration.arguments, personality)
    current = compared_values(existing.arguments, personality)
    meant = _meant_type(personality, declaration.arguments)
    said = (declaration.arguments.get(QUEUE_TYPE), existing.arguments.get(QUEUE_TYPE))
    literal = any(each in personality.absent_queue_types for each in said if each is not None)
    if personality.remembers_queue_type == "never" or (meant == existing.type_name and not literal):
        # Naming the type that is the default anyway makes no difference.
        received[QUEUE_TYPE], current[QUEUE_TYPE] = meant, existing.type_name
    compare_arguments(*compare, received, current, considered)


def _meant_type(personality: Personality, arguments: Mapping[str, Any]) -> Any:
    """The queue type that the arguments mean (RabbitMQ: classic if they name none)."""
    asked = arguments.get(QUEUE_TYPE, "classic")
    return "classic" if asked in personality.absent_queue_types else asked


def check_removed_arguments(
    name: str, virtual_host: str, arguments: Mapping[str, Any], personality: Personality
) -> None:
    """Refuse arguments that this version has removed.

    Raises:
        InternalError: there is such an argument; the error closes the connection.
    """
    for argument in personality.removed_queue_arguments:
        if argument in arguments:
            raise InternalError(f"invalid arg '{argument}' for queue '{name}' in vhost '{virtual_host}'")


def check_alternate(
    virtual_host: VirtualHost, asked: str | None, existing: Queue | Exchange | None = None
) -> None:
    """Refuse an alternate exchange that does not exist, or is not that of the existing entity.

    None names no alternate exchange, and is equivalent to any.

    Raises:
        NotAllowed: it is another one (queue.declare/alternate-exchange-pre-existing-exchange).
        NotFound: there is no such exchange (queue.declare/alternate-exchange-unknown-exchange).
    """
    if asked is None:
        return
    if existing is not None:
        if existing.alternate_exchange != asked:
            has = existing.alternate_exchange
            raise NotAllowed(
                f"{existing.kind} '{existing.name}' in vhost '{virtual_host.name}' has "
                f"{'no alternate exchange' if has is None else f'alternate exchange {has!r}'}, not {asked!r}"
            )
    elif asked not in virtual_host.exchanges:
        raise virtual_host.missing("exchange", asked)
