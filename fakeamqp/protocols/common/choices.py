"""Where a protocol finds the choices that concern it alone.

A protocol has a record of named choices and the records of the personalities in which they are not the
record's defaults. A personality of the user's own can bring another record as an extension.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality

__all__ = ["choices_of"]

C = TypeVar("C")


def choices_of(personality: Personality, usual: C, records: Mapping[str, C]) -> C:
    """The record of choices for a personality.

    Args:
        personality: of the broker.
        usual: the record of all personalities that neither `records` nor the personality has another for.
        records: by name of the personality.
    """
    found = personality.extensions.get(type(usual))
    return found if isinstance(found, type(usual)) else records.get(personality.name, usual)
