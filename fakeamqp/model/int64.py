"""Integers with a fixed encoded width."""

from __future__ import annotations

__all__ = ["Int64"]


class Int64(int):
    """An integer that field tables encode as a 64-bit integer, however small it is: see `encode_table`."""

    field_tag = "l"
