"""One option: a field of a dataclass, declared with its key, its type, its default value and its uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, overload

T = TypeVar("T")


@dataclass(frozen=True)
class Use:
    """Where an option of a reader applies. Elsewhere it is refused.

    Attributes:
        source: `queue` or `stream`, if it is for only one of them.
        shards: whether it goes with the option `shards`.
        batch: whether it is for batch reads only.
        spool: whether it is for ackMode=spool only.
        why: the reason for `source`.
    """

    source: str = ""
    shards: bool = True
    batch: bool = False
    spool: bool = False
    why: str = ""


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes:
        key: its name, whose case does not matter.
        parse: makes the value from text. A ValueError says what the text has to be.
        use: where it applies.
        default: the text of the default value; "" if there is none.
        shown: the default value in the documentation, if it is no text.
        alias: the name of the same option in Spark's source for Kafka, if it is another one.
        needs: the key of the option without which it has no meaning.
        secret: whether its text may hold a password, so that no error shows it.
        field: the name of the field.
    """

    key: str
    parse: Callable[[str], Any]
    use: Use = Use()
    default: str = ""
    shown: str = ""
    alias: str = ""
    needs: str = ""
    secret: bool = False
    field: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The key, and the alias if there is one."""
        return tuple(filter(None, (self.key, self.alias)))


@overload
def option(key: str, parse: Callable[[str], T], *, default: str, **more: Any) -> T: ...
@overload
def option(key: str, parse: Callable[[str], T], *, unset: T, **more: Any) -> T: ...
@overload
def option(key: str, parse: Callable[[str], T], **more: Any) -> T | None: ...


def option(key: str, parse: Callable[[str], Any], *, unset: Any = None, **more: Any) -> Any:
    """Declare a field of a dataclass as an option: see `Option`. The text below the field says what it means.

    `unset` is its value if it has no default.
    """
    made = Option(key, parse, **more)
    value = parse(made.default) if made.default else unset
    return field(default=value, repr=not made.secret, metadata={"option": made})


def options_of(record: type) -> dict[str, Option]:
    """The options that are fields of a dataclass, by their names and aliases in lower case."""
    found = [(each.name, each.metadata["option"]) for each in fields(record) if "option" in each.metadata]
    return {name.lower(): replace(made, field=field) for field, made in found for name in made.names}
