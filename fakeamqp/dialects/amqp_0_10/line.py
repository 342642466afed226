"""What faults may learn of a connection and do to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_10.endpoint import Endpoint

__all__ = ["Line"]


class Line:
    """One 0-10 connection as fault rules see it."""

    __slots__ = ("_endpoint",)

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
