"""The SASL mechanism AMQPLAIN (RabbitMQ: documented): a field table without its length field."""

from __future__ import annotations

from fakeamqp.connection import PeerAddress
from fakeamqp.model.access import User
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.codec.errors import WireError
from fakeamqp.protocols.common.sasl import MalformedResponse
from fakeamqp.protocols.framed.codec.tables import RABBITMQ

__all__ = ["AmqPlain"]


class AmqPlain:
    """A field table with LOGIN and PASSWORD."""

    def __init__(self, state: BrokerState, peer: PeerAddress) -> None:
        self._state = state

    def step(self, response: bytes) -> User | bytes:
        """See `Mechanism`."""
        octets = len(response).to_bytes(4, "big") + response
        try:
            table, _ = RABBITMQ.decode(octets, 0, len(octets))
        except WireError as problem:
            raise MalformedResponse(f"response is not a field table: {problem}") from None
        login, password = table.get("LOGIN"), table.get("PASSWORD")
        if not isinstance(login, str) or not isinstance(password, str):
            raise MalformedResponse("response lacks LOGIN or PASSWORD")
        return self._state.access.authenticate(login, password)
