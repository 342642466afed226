"""Validation of runtime parameters, which an operator sets by name: policies and limits.

RabbitMQ checks a parameter field by field and reports all problems in one text. `checked` does the same; each
field has a check function that returns a description of the problem, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from fakeamqp.errors import FakeAMQPError, nearest
from fakeamqp.model.erlang import pairs_term, term

__all__ = ["Check", "ParameterError", "checked", "failed", "hint", "mapping", "whole_number"]

Check: TypeAlias = "Callable[[str, Any], str | None]"
"""Takes the name of a field and its value, and returns a description of the problem, or None."""


class ParameterError(FakeAMQPError):
    """A policy or a limit cannot be set, or the one to clear does not exist.

    `reason` is RabbitMQ's text, without fakeamqp's hints.
    """

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


def checked(
    name: str, value: Any, fields: Mapping[str, tuple[Check, bool]]
) -> tuple[list[str], dict[str, Any]]:
    """Check a parameter's value against its fields.

    Args:
        name: the parameter's name in RabbitMQ's texts.
        value: the value, which should be a mapping.
        fields: for each field its check, and whether it is mandatory.

    Returns:
        The problems, in the order that RabbitMQ reports them, and the value's fields.
    """
    if not isinstance(value, Mapping):
        return [f"{name} not a list {term(value)}"], {}
    wrong: list[str] = []
    for field, (check, mandatory) in fields.items():
        if field in value:
            problem = check(field, value[field])
        else:
            problem = f'Key "{field}" not found in {name}' if mandatory else None
        if problem is not None:
            wrong.insert(0, problem)
    others = [(key, value[key]) for key in sorted(value) if key not in fields]
    if others:
        wrong.insert(0, f"Unrecognised terms {pairs_term(others)} in {name}")
    return wrong, dict(value)


def mapping(value: Any) -> Any:
    """A mapping from a list of pairs, the form that some versions of RabbitMQ export (measured).

    Any other value is returned as it is.
    """
    pairs = isinstance(value, list) and all(isinstance(each, list) and len(each) == 2 for each in value)
    return {str(name): item for name, item in value} if pairs else value


def failed(wrong: Iterable[str]) -> str:
    """RabbitMQ's text that reports all problems."""
    return "Validation failed\n\n" + "".join(f"{each}\n" for each in wrong)


def whole_number(name: str, value: Any) -> str | None:
    """Check that a field holds a whole number."""
    return None if type(value) is int else f"{name} should be a number, actually was {term(value)}"


def hint(name: str, known: Iterable[str]) -> str:
    """The end of a text about an unknown name: `; did you mean 'x'?`, or the known names."""
    names = list(known)
    near = nearest(name, names)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(sorted(names))}"
