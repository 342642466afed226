"""Classes and methods that a broker is made without (`Personality.not_implemented`).

Each protocol refuses them with its code for what is not implemented, 540. A method that a protocol does not
have at all is another error: see docs/decisions-0-9-1.md.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakeamqp.model.errors import NotImplementedHere


def is_absent(method: str, absent: Iterable[str]) -> bool:
    """Whether a method, such as "tx.select", is one of the absent classes and methods."""
    return any(method == name or method.startswith(f"{name}.") for name in absent)


def refuse_if_absent(method: str, absent: Iterable[str]) -> None:
    """Raise NotImplementedHere for a method that the broker is made without."""
    if is_absent(method, absent):
        raise NotImplementedHere(f"this broker is made without {method}")
