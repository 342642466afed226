"""Numbers that say how wide they are."""

from __future__ import annotations

__all__ = ["Long"]


class Long(int):
    """A number that goes out as a 64-bit integer, however small it is: see `wire`'s `encode_table`."""

    field_tag = "l"
