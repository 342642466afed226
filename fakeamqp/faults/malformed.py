"""Ways to break the protocol in what the broker sends, by protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fakeamqp.faults.adapter import Way, adapter_named
from fakeamqp.protocols.framed.faults.malformed import MALFORMATIONS

__all__ = ["MALFORMATIONS", "malformations"]


def malformations(protocols: Iterable[str]) -> dict[str, Mapping[str, Way]]:
    """By name, and then by protocol: the ways there are in these protocols."""
    found: dict[str, dict[str, Way]] = {}
    for protocol in protocols:
        for name, way in adapter_named(protocol).malformations.items():
            found.setdefault(name, {})[protocol] = way
    return dict(found)
