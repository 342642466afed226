"""The SASL mechanism AMQPLAIN (RabbitMQ: documented): a field table without its length field."""

from __future__ import annotations

from fakeamqp.connection import PeerAddress
from fakeamqp.model.access.users import User
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.protocols.base.codec.errors import WireError
from fakeamqp.protocols.base.sasl import MalformedResponse

__all__ = ["AmqPlain"]


class AmqPlain:
    """A field table with LOGIN and PASSWORD."""

    def __init__(self, state: BrokerState, peer: PeerAddress) -> None:
        self._state = state

    def step(self, response: bytes) -> User | bytes:
        octets = len(response).to_bytes(4, "big") + response
        try:
            table, _ = RABBITMQ.decode(octets, 0, len(octets))
        except WireError as problem:
            raise MalformedResponse(f"response is not a field table: {problem}") from None
        login = _text(table.get("LOGIN"))
        if login is None or "PASSWORD" not in table:
            raise MalformedResponse("response lacks LOGIN or PASSWORD")
        # A password of another type is a wrong one (measured), as the empty one is.
        return self._state.access.authenticate(login, _text(table["PASSWORD"]) or "")


def _text(value: object) -> str | None:
    """A long string or a byte array as text; None for other types."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else None
