"""All attempts. Each is a function that attacks a target and returns the outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compat_tests.attempts.targets import Target

__all__ = ["ATTEMPTS", "Attempt", "Row", "attempt"]


@dataclass(frozen=True)
class Row:
    """One line of an attempt: what happened, in words that are the same in every run, and figures."""

    happened: str
    figures: str = ""


@dataclass(frozen=True)
class Attempt:
    """An attempt on a broker. `descriptors` is the number that the broker's process may have."""

    name: str
    title: str
    about: str
    make: Callable[[Target], dict[str, Row]]
    tls: bool = False
    descriptors: int | None = None
    rabbitmq: str = ""
    """Why it is not made on RabbitMQ."""
    long: bool = False
    """Whether `make test` leaves it out."""


ATTEMPTS: dict[str, Attempt] = {}


def attempt(
    title: str, *, tls: bool = False, descriptors: int | None = None, rabbitmq: str = "", long: bool = False
) -> Callable[[Callable[[Target], dict[str, Row]]], Callable[[Target], dict[str, Row]]]:
    """Register a function as an attempt; its docstring is printed on the page."""

    def register(make: Callable[[Target], dict[str, Row]]) -> Callable[[Target], dict[str, Row]]:
        name = make.__name__.replace("_", "-")
        about = " ".join((make.__doc__ or "").split())
        ATTEMPTS[name] = Attempt(name, title, about, make, tls, descriptors, rabbitmq, long)
        return make

    return register
