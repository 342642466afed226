"""Ways to break the protocol in what the broker sends, by dialect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fakeamqp.faults.amqp_0_9_x.malformed import MALFORMATIONS
from fakeamqp.faults.dialect import Way, dialect_named

__all__ = ["MALFORMATIONS", "malformations"]


def malformations(dialects: Iterable[str]) -> dict[str, Mapping[str, Way]]:
    """By name, and then by dialect: the ways there are in these dialects."""
    found: dict[str, dict[str, Way]] = {}
    for dialect in dialects:
        for name, way in dialect_named(dialect).malformations.items():
            found.setdefault(name, {})[dialect] = way
    return dict(found)
