"""The ways to send a method malformed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fakeamqp.faults.adapter import Malformation, adapter_named
from fakeamqp.protocols.framed.faults.malformed import MALFORMATIONS

__all__ = ["MALFORMATIONS", "malformations"]


def malformations(protocols: Iterable[str]) -> dict[str, Mapping[str, Malformation]]:
    """By name and then by protocol: the malformations of these protocols."""
    found: dict[str, dict[str, Malformation]] = {}
    for protocol in protocols:
        for name, malformation in adapter_named(protocol).malformations.items():
            found.setdefault(name, {})[protocol] = malformation
    return dict(found)
