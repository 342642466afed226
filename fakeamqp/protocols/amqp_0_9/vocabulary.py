"""The methods with different numbers in 0-9 and 0-8, in addition to those of `amqp_0_9_1.vocabulary`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from fakeamqp.protocols.amqp_0_9_1 import vocabulary

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["Vocabulary09"]


class Vocabulary09(vocabulary.Vocabulary, Protocol):
    """The methods of 0-9 or of 0-8."""

    @property
    def ConnectionRedirect(self) -> Callable[..., Method]:
        """connection.redirect."""
