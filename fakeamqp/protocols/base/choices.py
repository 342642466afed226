"""Look up the choices that concern one protocol only.

A protocol has a dataclass of named choices. Its defaults hold for most personalities; the protocol lists the
personalities that have other values. A user's own personality can carry its values as an extension.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality

__all__ = ["choices_of"]

C = TypeVar("C")


def choices_of(personality: Personality, usual: C, records: Mapping[str, C]) -> C:
    """Return the choices for a personality: its extension, its entry in `records`, or `usual`.

    Args:
        personality: the broker's personality.
        usual: the choices of every personality without an own entry.
        records: personality name -> choices.
    """
    found = personality.extensions.get(type(usual))
    return found if isinstance(found, type(usual)) else records.get(personality.name, usual)
