"""Companions: what starts and stops with a broker, but belongs to an outer package.

The broker imports none of these packages: it knows companions by name, and loads one on first use.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from fakeamqp.errors import FakeAMQPError

if TYPE_CHECKING:
    import threading

    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.tap import Tap
    from fakeamqp.runtime.engine import Engine

__all__ = ["AddressedCompanion", "Companion", "CompanionContext", "ManagementUnavailable", "companion"]

_ENTRY_POINTS = {"management": "fakeamqp.management.companion:ManagementCompanion"}
"""What makes a companion of its `CompanionContext`, by name: `module:attribute`."""


class ManagementUnavailable(FakeAMQPError):
    """The packages that the HTTP API needs are not installed."""

    __module__ = "fakeamqp"


@dataclass(frozen=True)
class CompanionContext:
    """What a companion uses of its broker.

    Args:
        broker: the `Broker`. A companion that wants its type imports it.
        engine: its engine.
        state: its state, to be read and changed inside the engine only.
    """

    broker: Any
    engine: Engine
    state: BrokerState


class Companion(Protocol):
    """What the broker calls. It holds no lock of the engine during `start` and `stop`."""

    def observe(self, recorder: Tap | None) -> Tap | None:
        """The tap of a broker with this companion; it passes all on to the recorder, if there is one."""

    def start(self, host: str) -> None:
        """Start with the broker, which listens already; `host` is the address that it was given."""

    def stop(self) -> None:
        """End every thread and close every socket. Idempotent."""

    def cleared(self) -> None:
        """The broker was reset or restarted; called inside the engine."""


class AddressedCompanion(Companion, Protocol):
    """A companion that listens on a port."""

    @property
    def address(self) -> tuple[str, int] | None:
        """The numeric host and the port; None before the first start."""

    def inspector_address(self, url: str) -> str:
        """The address of the inspector page on the server of this URL."""

    def hold_open(self, title: str, released: threading.Event | None) -> None:
        """Tell the page that a failed test is held open until `released` is set; None ends this."""


def companion(name: str, context: CompanionContext, **settings: Any) -> Any:
    """Make the companion of this name.

    Raises:
        FakeAMQPError: a package that it needs is not installed, or a setting is invalid.
    """
    module, _, attribute = _ENTRY_POINTS[name].partition(":")
    return getattr(import_module(module), attribute)(context, **settings)
