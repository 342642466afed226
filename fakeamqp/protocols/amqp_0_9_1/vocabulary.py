"""The methods that the shared code sends. Each protocol has them in its own `codec` package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["Vocabulary"]

_Make: TypeAlias = "Callable[..., Method]"


class Vocabulary(Protocol):
    """The method classes of one protocol; its module `codec.methods` implements this."""

    @property
    def METHODS(self) -> Mapping[int, type[Method]]:
        """Method index (class id << 16 | method id) -> method class."""

    @property
    def ConnectionStart(self) -> _Make:
        """connection.start."""

    @property
    def ConnectionSecure(self) -> _Make:
        """connection.secure."""

    @property
    def ConnectionTune(self) -> _Make:
        """connection.tune."""

    @property
    def ConnectionClose(self) -> _Make:
        """connection.close."""

    @property
    def ConnectionCloseOk(self) -> _Make:
        """connection.close-ok."""

    @property
    def ChannelOpenOk(self) -> _Make:
        """channel.open-ok."""

    @property
    def ChannelFlow(self) -> _Make:
        """channel.flow."""

    @property
    def ChannelFlowOk(self) -> _Make:
        """channel.flow-ok."""

    @property
    def ChannelClose(self) -> _Make:
        """channel.close."""

    @property
    def ChannelCloseOk(self) -> _Make:
        """channel.close-ok."""

    @property
    def BasicGetOk(self) -> _Make:
        """basic.get-ok."""

    @property
    def BasicReturn(self) -> _Make:
        """basic.return."""
