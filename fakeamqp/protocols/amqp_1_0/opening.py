"""From the protocol header to an open connection: SASL and open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fakeamqp.model.access import User
from fakeamqp.model.errors import AuthenticationFailed, InvalidPath, NotAllowed
from fakeamqp.model.limits import check_connection_limits
from fakeamqp.model.names import NODE
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import MIN_MAX_FRAME_SIZE
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol
from fakeamqp.protocols.base.login import MECHANISMS, MalformedResponse, Mechanism, NotOffered, why_not_opened

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_1_0.server_connection import Amqp10Connection

_VIRTUAL_HOST: Final = "vhost:"
_LEAST_IDLE_TIMEOUT: Final = 1000
CAPABILITIES: Final = ("LINK_PAIR_V1_0", "ANONYMOUS-RELAY")
_OK, _AUTH = 0, 1


class AmqPlain10(Mechanism):
    """The SASL mechanism AMQPLAIN: LOGIN and PASSWORD as long strings of a field table without its size."""

    def step(self, response: bytes) -> User | bytes:
        fields = _long_strings(response)
        if "LOGIN" not in fields or "PASSWORD" not in fields:
            raise MalformedResponse("response lacks LOGIN or PASSWORD")
        login, password = (fields[name].decode("utf-8", "surrogateescape") for name in ("LOGIN", "PASSWORD"))
        return self._state.access.authenticate(login, password)


def _long_strings(octets: bytes) -> dict[str, bytes]:
    """The fields of a table that has long strings only. MalformedResponse."""
    found = {}
    offset = 0
    while offset < len(octets):
        name = octets[offset + 1 : offset + 1 + octets[offset]]
        offset += 1 + len(name)
        size = int.from_bytes(octets[offset + 1 : offset + 5], "big")
        value = octets[offset + 5 : offset + 5 + size]
        if octets[offset : offset + 1] != b"S" or len(value) != size:
            raise MalformedResponse("response is not a field table of long strings")
        found[name.decode("latin-1")] = value
        offset += 5 + size
    return found


ALL_MECHANISMS: dict[str, type[Mechanism]] = {**MECHANISMS, "AMQPLAIN": AmqPlain10}


def start(connection: Amqp10Connection) -> None:
    """Offer the mechanisms."""
    connection.send_sasl(c.SaslMechanisms(sasl_server_mechanisms=connection.login.offered))


def receive_sasl(connection: Amqp10Connection, body: c.Composite) -> None:
    """A step of the login. Anything but sasl-init and sasl-response ends the transport."""
    connection.enter(body.NAME)
    if isinstance(body, c.SaslInit):
        try:
            connection.login.choose(body.mechanism, None)
        except NotOffered as problem:
            connection.refuse(str(problem))
            return
        _step(connection, body.initial_response or b"")
    elif isinstance(body, c.SaslResponse):
        _step(connection, body.response)


def _step(connection: Amqp10Connection, response: bytes) -> None:
    try:
        answer = connection.login.step(response)
    except MalformedResponse as problem:
        # RabbitMQ ends the transport without an outcome (measured on 4.0.5 and 4.3.6).
        connection.refuse(str(problem), problem.why)
        return
    except AuthenticationFailed as problem:
        connection.send_sasl(c.SaslOutcome(code=_AUTH))
        connection.refuse(f"login with {connection.login.mechanism} failed: {problem}", problem.why)
        return
    if not isinstance(answer, User):
        connection.challenge()
        connection.send_sasl(c.SaslChallenge(challenge=answer))
        return
    connection.authenticated(answer)
    connection.send_sasl(c.SaslOutcome(code=_OK))


def open_connection(connection: Amqp10Connection, body: c.Open) -> None:
    """Open the virtual host that the hostname names, and agree on the limits.

    The transport ends without an answer where this is not possible (1-0/open/refused).
    """
    connection.client_properties = {str(name): value for name, value in (body.properties or {}).items()}
    connection.container_id = body.container_id
    idle = body.idle_time_out
    if idle is not None and 0 < idle < _LEAST_IDLE_TIMEOUT:
        connection.refuse(f"idle-time-out of {idle} ms is below the least, {_LEAST_IDLE_TIMEOUT}")
        return
    largest = body.or_default("max_frame_size")
    if largest < MIN_MAX_FRAME_SIZE:
        connection.refuse(f"max-frame-size {largest} is below the least, {MIN_MAX_FRAME_SIZE}")
        return
    hostname = body.hostname or ""
    named = hostname.startswith(_VIRTUAL_HOST)
    name = hostname[len(_VIRTUAL_HOST) :] if named else "/"
    assert connection.user is not None
    try:
        virtual_host = connection.broker.virtual_host(name)
        check_connection_limits(connection.broker, virtual_host, connection.user)
        connection.broker.access.check_virtual_host(connection.user, name)
    except (NotAllowed, InvalidPath) as problem:
        connection.refuse(str(problem), why_not_opened(connection.broker, connection.user, name, problem))
        return
    personality = connection.personality
    connection.agree(
        channel_max=min(body.or_default("channel_max"), connection.choices.channel_max),
        largest_sent=largest,
        idle_time_out=None if not idle else idle / 1000,
    )
    seconds = personality.heartbeat // 2
    facts = {
        "node": NODE,
        "cluster_name": connection.broker.cluster_name,
        "copyright": "Copyright (c) the fakeamqp developers",
        "information": "fakeamqp, a broker for tests: licensed under Apache-2.0",
        "platform": "Erlang/OTP",
        "product": personality.product,
        "version": personality.version,
    }
    answer = c.Open(
        container_id=connection.broker.cluster_name,
        max_frame_size=connection.max_frame_size,
        channel_max=connection.channel_max,
        idle_time_out=seconds * 1000 if seconds else None,
        offered_capabilities=CAPABILITIES,
        properties={Symbol(key): value for key, value in facts.items()},
    )
    connection.send(0, answer)
    connection.opened(virtual_host)
