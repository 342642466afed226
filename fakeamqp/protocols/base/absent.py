"""Classes and methods that a broker is made without (`Personality.not_implemented`).

Each protocol refuses them with its code for what is not implemented, 540. A method that a protocol does not
have at all is another error: see docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakeamqp.errors import FakeAMQPError, near_match
from fakeamqp.model.errors import NotImplementedHere

__all__ = ["BadAbsence", "check_names", "is_absent", "refuse_if_absent"]

_NEEDED = (
    "connection",
    "session",
    "execution",
    "channel.open",
    "channel.close",
    "channel.close-ok",
)
"""The classes and methods without which there is no conversation."""


class BadAbsence(FakeAMQPError):
    """`not_implemented` names something that no protocol has, or that no broker can be without."""


def is_absent(method: str, absent: Iterable[str]) -> bool:
    """Whether the broker is made without a method.

    Args:
        method: its name, such as "tx.select".
        absent: the names of absent classes and methods.
    """
    return any(method == name or method.startswith(f"{name}.") for name in absent)


def refuse_if_absent(method: str, absent: Iterable[str]) -> None:
    """Refuse a method that the broker is made without; see `is_absent`.

    Raises:
        NotImplementedHere: it is.
    """
    if is_absent(method, absent):
        raise NotImplementedHere(f"this broker is made without {method}")


def check_names(absent: object, methods: Iterable[str]) -> None:
    """Check names of absent classes and methods.

    Args:
        absent: the names.
        methods: the names of all methods of all protocols.

    Raises:
        BadAbsence: they are not a tuple of str; no method has a name or is of the class; or one is needed.
    """
    if not isinstance(absent, tuple) or not all(isinstance(name, str) for name in absent):
        raise BadAbsence(
            f"not_implemented must be a tuple of class and method names, such as ('dtx',), not {absent!r}"
        )
    known = {name: None for method in methods for name in (method.partition(".")[0], method)}
    for name in absent:
        if name not in known:
            raise BadAbsence(
                f"not_implemented: no protocol has a class or method {name!r}{near_match(name, known)}"
            )
        if name == "channel" or is_absent(name, _NEEDED):
            raise BadAbsence(f"not_implemented: no broker can be without {name!r}")
