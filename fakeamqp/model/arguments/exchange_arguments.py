"""The arguments of `exchange.declare`: one row each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fakeamqp.model.arguments.rows import (
    Argument,
    PolicyKey,
    Taken,
    argument_wins,
    option,
    read_options,
    rows_of,
)
from fakeamqp.model.arguments.values import ArgumentReader, text
from fakeamqp.model.erlang import type_name
from fakeamqp.model.errors import ChannelCrash

if TYPE_CHECKING:
    from fakeamqp.model.virtual_host import VirtualHost

DELAYED_TYPE: Final = "x-delayed-type"

ANY_TYPE = "*"
"""Stands for every type of exchange."""


def _text(reader: ArgumentReader, name: str) -> str:
    """A string; any other value is a ChannelCrash."""
    value = reader.arguments[name]
    if not isinstance(value, str):
        raise ChannelCrash(f"{name} must be a string, not {type_name(value)}")
    return value


@dataclass(frozen=True)
class ExchangeOptions:
    """What the arguments of an exchange ask for; each field stands in the row of its argument."""

    alternate_exchange: str | None = option(
        "alternate-exchange",
        ArgumentReader.exchange,
        {ANY_TYPE: Taken()},
        PolicyKey(text("is not a valid alternate exchange name"), merge=argument_wins, foreign={}),
    )
    hash_header: str | None = option("hash-header", _text, {"x-consistent-hash": Taken(compared=False)})
    hash_property: str | None = option("hash-property", _text, {"x-consistent-hash": Taken(compared=False)})
    delayed_type: str | None = option(
        DELAYED_TYPE, ArgumentReader.text_if_any, {"x-delayed-message": Taken(compared=False)}
    )


EXCHANGE_ARGUMENTS: tuple[Argument, ...] = rows_of(ExchangeOptions)

COMPARED_EXCHANGE_ARGUMENTS = tuple(
    row.name for row in EXCHANGE_ARGUMENTS if any(taken.compared for taken in row.types.values())
)
"""The arguments that a redeclaration must repeat."""


def exchange_options(
    kind: str, name: str, virtual_host: VirtualHost, arguments: Mapping[str, Any]
) -> ExchangeOptions:
    """Read the arguments of `exchange.declare` for an exchange of type `kind`.

    An illegal value raises PreconditionFailed or ChannelCrash.
    """
    reader = ArgumentReader("exchange", name, virtual_host.name, arguments, virtual_host.state.personality)
    known = [row.name for row in EXCHANGE_ARGUMENTS if kind in row.types or ANY_TYPE in row.types]
    return ExchangeOptions(**read_options(EXCHANGE_ARGUMENTS, reader, known))
