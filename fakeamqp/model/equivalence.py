"""Equivalence of declarations.

Arguments are compared by meaning: order and integer width do not matter
(exchange.declare/arguments-equivalence).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from fakeamqp.model.erlang import float_text
from fakeamqp.model.errors import PreconditionFailed

__all__ = ["compare_arguments", "compare_flag", "freeze", "type_name"]

_ABSENT = object()


def type_name(value: Any) -> str:
    """RabbitMQ's name for the field type that encodes a value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        if type(value) is not int:
            return "timestamp"  # The only other subclass of int.
        return "signedint" if -(2**31) <= value < 2**31 else "long"
    for kind, name in (
        (float, "double"),
        (str, "longstr"),
        (bytes, "binary"),
        (Decimal, "decimal"),
        (Mapping, "table"),
        (list, "array"),
    ):
        if isinstance(value, kind):
            return name
    return "void"


def compare_flag(
    kind: str, name: str, virtual_host: str, flag: str, received: object, current: object
) -> None:
    """Refuse a flag or type that differs.

    Raises:
        PreconditionFailed: with RabbitMQ's text.
    """
    if received != current:
        raise PreconditionFailed(
            f"inequivalent arg '{flag}' for {kind} '{name}' in vhost '{virtual_host}': "
            f"received {_shown(received)} but current is {_shown(current)}"
        )


def compare_arguments(
    kind: str,
    name: str,
    virtual_host: str,
    received: Mapping[str, Any],
    current: Mapping[str, Any],
    considered: Iterable[str] | None,
) -> None:
    """Refuse arguments that differ.

    Args:
        kind: of the entity, for the text.
        name: of the entity, for the text.
        virtual_host: its name, for the text.
        received: the arguments of the declaration.
        current: those of the existing entity.
        considered: the names to compare, in the order in which differences are reported; None means all,
            by name. It is iterated only if arguments differ.

    Raises:
        PreconditionFailed: with RabbitMQ's text.
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
            difference = _difference(received.get(key, _ABSENT), current.get(key, _ABSENT))
            raise PreconditionFailed(
                f"inequivalent arg '{key}' for {kind} '{name}' in vhost '{virtual_host}': {difference}"
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
    return f"'{_text(value)}'"


def _text(value: object) -> str:
    """A value without quotes, as RabbitMQ's texts print it."""
    if isinstance(value, bool):
        return str(value).lower()
    return float_text(value) if isinstance(value, float) else str(value)


def _difference(new: object, old: object) -> str:
    if new is not _ABSENT and old is not _ABSENT:
        return f"received {_shown(new)} but current is {_shown(old)}"
    return f"received {_argument(new)} but current is {_argument(old)}"


def _argument(value: Any) -> str:
    if value is _ABSENT:
        return "none"
    return f"the value {_shown(value)} of type '{type_name(value)}'"
