"""The methods that 0-9 and 0-8 number differently, beside those of `amqp_0_9_x.vocabulary`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from fakeamqp.dialects.amqp_0_9_x import vocabulary

if TYPE_CHECKING:
    from fakeamqp.wire.amqp_0_9_x.method import Method

__all__ = ["Vocabulary"]


class Vocabulary(vocabulary.Vocabulary, Protocol):
    """The methods of 0-9 or of 0-8."""

    @property
    def ConnectionRedirect(self) -> Callable[..., Method]:
        """connection.redirect."""
