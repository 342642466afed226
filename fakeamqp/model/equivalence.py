"""Checks of declarations: legal names, and equivalence with an existing entity.

Arguments are compared by meaning, not order or width of integers (exchange.declare/arguments-equivalence).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from fakeamqp.model.arguments.exchange_arguments import COMPARED_EXCHANGE_ARGUMENTS
from fakeamqp.model.arguments.queue_arguments import QUEUE_TYPE, compared_arguments, compared_values
from fakeamqp.model.erlang import float_text, type_name
from fakeamqp.model.errors import NotAllowed, PreconditionFailed

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.queues import Queue, QueueDeclaration
    from fakeamqp.model.virtual_host import VirtualHost

_ABSENT = object()
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9\-_.:]*")


def check_name(personality: Personality, kind: str, name: str) -> None:
    """PreconditionFailed for a name that is too long or has forbidden characters (domain.*/pattern)."""
    if len(name.encode("utf-8", "surrogateescape")) > personality.longest_name:
        raise PreconditionFailed(
            f"{kind} name is longer than {personality.longest_name} bytes: '{name[:60]}...'"
        )
    if personality.restricts_names and not _LEGAL_NAME.fullmatch(name):
        raise PreconditionFailed(
            f"{kind} name '{name}' holds characters other than letters, digits, '-', '_', '.' and ':'"
        )


def check_same_exchange(
    existing: Exchange, kind: str, flags: Mapping[str, bool], arguments: Mapping[str, Any]
) -> None:
    """Refuse a declaration that is not equivalent to the exchange (exchange.declare/passive-equivalent).

    PreconditionFailed has RabbitMQ's text, which names the first difference; `flags` are compared in order.
    """
    compare = ("exchange", existing.name, existing.virtual_host.name)
    compare_flag(*compare, "type", _atom(kind), _atom(existing.type_name))
    for flag, asked in flags.items():
        compare_flag(*compare, flag, asked, getattr(existing, flag))
    known = existing.virtual_host.state.personality.equivalence_ignores_unknown_arguments
    compare_arguments(*compare, arguments, existing.arguments, COMPARED_EXCHANGE_ARGUMENTS if known else None)


def check_same_queue(existing: Queue, declaration: QueueDeclaration) -> None:
    """Refuse a declaration that is not equivalent to the queue (queue.declare/passive-equivalent).

    PreconditionFailed has RabbitMQ's text, which names the first difference. Exclusive queues are never
    durable, so the flag is not compared for them.
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
    # The queue type that the arguments mean (RabbitMQ: classic if they name none).
    asked = declaration.arguments.get(QUEUE_TYPE, "classic")
    meant = "classic" if asked in personality.absent_queue_types else asked
    said = (declaration.arguments.get(QUEUE_TYPE), existing.arguments.get(QUEUE_TYPE))
    literal = any(each in personality.absent_queue_types for each in said if each is not None)
    if personality.remembers_queue_type == "never" or (meant == existing.type_name and not literal):
        # Naming the type that is the default anyway makes no difference.
        received[QUEUE_TYPE], current[QUEUE_TYPE] = meant, existing.type_name
    compare_arguments(*compare, received, current, considered)


def check_alternate(
    virtual_host: VirtualHost, asked: str | None, existing: Queue | Exchange | None = None
) -> None:
    """Refuse an alternate exchange that does not exist, or is not that of the existing entity.

    None names no alternate exchange, and is equivalent to any. Raises NotAllowed for another one
    (queue.declare/alternate-exchange-pre-existing-exchange), and NotFound if there is no such exchange
    (queue.declare/alternate-exchange-unknown-exchange).
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


def compare_flag(
    kind: str, name: str, virtual_host: str, flag: str, received: object, current: object
) -> None:
    """PreconditionFailed for a flag or type that differs, with RabbitMQ's text."""
    if received != current:
        raise _inequivalent(kind, name, virtual_host, flag, _shown(received), _shown(current))


def compare_arguments(
    kind: str,
    name: str,
    virtual_host: str,
    received: Mapping[str, Any],
    current: Mapping[str, Any],
    considered: Iterable[str] | None,
) -> None:
    """PreconditionFailed for arguments that differ, with RabbitMQ's text.

    `considered` are the names to compare, in the order in which differences are reported; None means all, by
    name. It is iterated only if arguments differ.
    """
    different = {
        key
        for key in {*received, *current}
        if freeze(received.get(key, _ABSENT)) != freeze(current.get(key, _ABSENT))
    }
    if not different:
        return
    for key in considered if considered is not None else sorted(different):
        if key in different:
            shown = _shown if key in received and key in current else _with_type
            new, old = shown(received.get(key, _ABSENT)), shown(current.get(key, _ABSENT))
            raise _inequivalent(kind, name, virtual_host, key, new, old)


def _inequivalent(
    kind: str, name: str, virtual_host: str, argument: str, received: str, current: str
) -> PreconditionFailed:
    return PreconditionFailed(
        f"inequivalent arg '{argument}' for {kind} '{name}' in vhost '{virtual_host}': "
        f"received {received} but current is {current}"
    )


def freeze(value: Any) -> Any:
    """A hashable form of a field value; equal forms mean equivalent values."""
    if isinstance(value, Mapping):
        return ("table", tuple(sorted((key, freeze(item)) for key, item in value.items())))
    if isinstance(value, (list, tuple)):
        return ("array", tuple(freeze(item) for item in value))
    if isinstance(value, (bool, float)):
        return (type(value).__name__, value)  # 1, 1.0 and true are not the same to RabbitMQ: measured.
    if isinstance(value, Decimal):
        return ("decimal", value.as_tuple())
    return value


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"'{float_text(value) if isinstance(value, float) else text}'"


def _atom(name: str) -> str:
    """A type as RabbitMQ prints it: one with a hyphen has quotes of its own (measured on 3.10, 4.0, 4.3)."""
    return f"'{name}'" if "-" in name else name


def _with_type(value: object) -> str:
    return "none" if value is _ABSENT else f"the value {_shown(value)} of type '{type_name(value)}'"
