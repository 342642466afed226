"""Sorts the options of a job under test into those of its source and those of its sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.errors import near_match
from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.option_table import OPTIONS, READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Mapping

_USES = {option.key.lower(): option.uses for option in OPTIONS}


def of_source(given: Mapping[str, object]) -> dict[str, str]:
    """The options of the source, as text.

    Raises:
        OptionError: neither the source nor the sink has such an option.
    """
    return _of(READ, given)


def of_sink(given: Mapping[str, object]) -> dict[str, str]:
    """The options of the sink, as text.

    Raises:
        OptionError: neither the source nor the sink has such an option.
    """
    return _of(WRITE, given)


def as_text(value: object) -> str:
    """The value of an option in Spark's form: lists with commas, booleans in lower case."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(as_text, value))
    return str(value)


def _of(use: str, given: Mapping[str, object]) -> dict[str, str]:
    for key in given:
        if key.lower() not in _USES:
            keys = [option.key for option in OPTIONS]
            raise OptionError(f"there is no option {key!r}{near_match(key, keys, most=0)}")
    return {key: as_text(value) for key, value in given.items() if use in _USES[key.lower()]}
