"""The ways to send a method malformed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fakeamqp.dialects import Malformation, default_protocol, dialect_named

__all__ = ["malformations", "usual_malformations"]


def malformations(protocols: Iterable[str]) -> dict[str, Mapping[str, Malformation]]:
    """By name and then by protocol: the malformations of these protocols."""
    found: dict[str, dict[str, Malformation]] = {}
    for protocol in protocols:
        for name, malformation in dialect_named(protocol).malformations.items():
            found.setdefault(name, {})[protocol] = malformation
    return dict(found)


def usual_malformations() -> Mapping[str, Malformation]:
    """By name: the malformations of the most common protocol."""
    return default_protocol().dialect.malformations
