"""Messages: publishing them, and taking them from queues."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fakeamqp.errors import FakeAMQPError
from fakeamqp.management.acting import OWNER, authorise, exchange_name, user_of
from fakeamqp.management.errors import bad_request, crashed, not_found
from fakeamqp.management.resource import Resource, table
from fakeamqp.management.values import jsonable
from fakeamqp.model.deliveries.delivery import Ledger, reject_all, release_all
from fakeamqp.model.errors import ModelError, NotImplementedHere, PreconditionFailed
from fakeamqp.model.messages.message import Message, PlainProperties, plain_properties, time_to_live
from fakeamqp.model.names import NODE
from fakeamqp.model.virtual_host.firehose import PublishSource
from fakeamqp.protocols import registry

if TYPE_CHECKING:
    from fakeamqp.management.resource import ApiCall
    from fakeamqp.model.access import User
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.state import BrokerState

_INTEGERS = ("delivery_mode", "priority", "timestamp")
_TEXTS = (
    "app_id",
    "user_id",
    "type",
    "message_id",
    "expiration",
    "reply_to",
    "correlation_id",
    "content_encoding",
    "content_type",
)
_ACKMODES = ("ack_requeue_true", "ack_requeue_false", "reject_requeue_true", "reject_requeue_false")
_ENCODINGS = ("auto", "base64")


def _properties(given: Any) -> PlainProperties:
    if not isinstance(given, dict):
        given = {}  # RabbitMQ writes an empty object as a list, and takes it (measured).
    found: dict[str, Any] = {}
    for name in _INTEGERS:
        if name in given:
            if isinstance(given[name], bool) or not isinstance(given[name], int):
                raise bad_request(["not_int", name])
            found[name] = given[name]
    for name in _TEXTS:
        if name in given:
            if not isinstance(given[name], str):
                raise bad_request(["not_string", name])
            found[name] = given[name]
    headers = given.get("headers")
    if isinstance(headers, dict):
        found["headers"] = table(headers)
    return plain_properties(**found)


def _publish(call: ApiCall) -> object:
    name = exchange_name(call.names["name"])
    routing_key, payload, encoding, properties = call.fields(
        "routing_key", "payload", "payload_encoding", "properties"
    )
    if not isinstance(payload, str):
        raise bad_request("payload_not_string")
    if not isinstance(routing_key, str):
        raise bad_request(["not_string", routing_key])
    if encoding == "string":
        body = payload.encode("utf-8", "replace")
    elif encoding == "base64":
        try:
            body = base64.b64decode(payload, validate=True)
        except (binascii.Error, ValueError):
            raise bad_request(["not_base64", payload]) from None
    else:
        raise bad_request(["unsupported_encoding", encoding])
    made = _properties(properties)

    def publish(state: BrokerState) -> bool:
        host = call.virtual_host(state)
        if name not in host.exchanges:
            raise not_found("exchange_not_found")
        user = user_of(call, state)
        authorise(call, state, "write", name)
        if host.exchanges[name].type_name == "topic":
            state.access.check_topic(user, host.name, "write", name, routing_key)
        if made.user_id not in (None, user.name) and "impersonator" not in user.tags:
            raise _Precondition(
                f"user_id property set to '{made.user_id}' but authenticated user was '{user.name}'"
            )
        expires = made.expiration is not None and state.personality.expiration_is_ttl
        expiry = time_to_live(str(made.expiration)) if expires else None
        message = Message(name, routing_key, made, body, expiry=expiry)
        message.secured = True
        registry.PROTOCOLS[0].check_message(message)
        if host.firehose is not None:
            host.firehose.publisher = _source(user)
        routed = host.publish(message, mandatory=True).routed
        count = call.management.statistics.of_message
        count("confirm", virtual_host=host.name)
        if not routed:
            count("return_unroutable", virtual_host=host.name)
        return routed

    try:
        routed = call.management.change(publish)
    except PreconditionFailed as problem:
        raise bad_request(f"406 PRECONDITION_FAILED - {problem.text}") from None
    except ModelError:
        raise
    except FakeAMQPError as problem:  # A value does not fit its field.
        raise bad_request(str(problem)) from None
    return {"routed": routed}


class _Precondition(PreconditionFailed):
    """A property is not permitted."""


def _get(call: ApiCall) -> object:
    ackmode, _, encoding = call.fields("ackmode", "count", "encoding")
    if encoding not in _ENCODINGS:
        raise bad_request("Unsupported encoding. Please use auto or base64.")
    if ackmode not in _ACKMODES:
        raise (
            crashed()
            if call.choices.crashes_on_bad_values
            else bad_request(f"Invalid ackmode value: {ackmode}. Valid values are: {', '.join(_ACKMODES)}")
        )
    count, truncate = (_integer(call, name) for name in ("count", "truncate"))
    if count is None:
        raise bad_request(["not_int", "count"])

    def take(state: BrokerState) -> list[dict[str, Any]]:
        host = call.virtual_host(state)
        if call.names["name"] not in host.queues:
            raise not_found("queue_not_found")
        authorise(call, state, "read", call.names["name"])
        queue = host.queues.require(call.names["name"], OWNER)
        ledger = Ledger()
        views: list[dict[str, Any]] = []
        deliveries: list[Delivery] = []
        try:
            # A negative number takes all (measured).
            while len(views) != count:
                taken = queue.get(OWNER, no_ack=ackmode == "ack_requeue_false")
                if taken is None:
                    break
                queued, delivery = taken
                if delivery is not None:
                    ledger.add(delivery)
                    deliveries.append(delivery)
                message = queue.as_delivered(queued, asked=True)
                if host.firehose is not None:
                    source = _source(user_of(call, state))
                    host.firehose.delivered(source, queue.name, message, queued.redelivered)
                views.append(
                    {
                        **message_view(message, encoding, truncate),
                        "redelivered": queued.redelivered,
                        "message_count": len(queue.ready),
                    }
                )
            statistics = call.management.statistics
            if views:
                event = "get_no_ack" if ackmode == "ack_requeue_false" else "get"
                again = sum(bool(each["redelivered"]) for each in views)
                for name, number in ((event, len(views)), ("deliver_get", len(views)), ("redeliver", again)):
                    statistics.of_message(name, number, virtual_host=host.name, queue=queue.name)
            if len(views) != count:
                statistics.of_message("get_empty", virtual_host=host.name, queue=queue.name)
        finally:
            ledger.take_all()
            _settle(ackmode, deliveries)
        return views

    try:
        return call.management.change(take)
    except NotImplementedHere as problem:
        raise bad_request(f"540 {problem.text}") from None


def _source(user: User) -> PublishSource:
    """What copies of the firehose say of a request, which RabbitMQ carries out on a connection of its own."""
    return PublishSource(f"<{NODE}.1.1.0>", 1, user.name)


def _settle(ackmode: str, deliveries: list[Delivery]) -> None:
    if not deliveries:
        return
    if ackmode == "ack_requeue_true":
        release_all(deliveries)
    elif ackmode == "reject_requeue_true":
        release_all(deliveries, ending="failed")
    else:
        reject_all(deliveries)


def _integer(call: ApiCall, name: str) -> int | None:
    value = call.json.get(name)
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise bad_request(["not_int", name]) from None


def message_view(message: Message, encoding: str = "auto", truncate: int | None = None) -> dict[str, Any]:
    """A message: where it was published to, its properties and its payload.

    Args:
        message: the message.
        encoding: "auto" for text where the payload is UTF-8, and base64 otherwise; or "base64".
        truncate: how many bytes of the payload to show; None for all.
    """
    body = bytes(message.body)
    shown = body if truncate is None else body[:truncate]
    try:
        payload, kind = shown.decode("utf-8"), "string"
    except UnicodeDecodeError:
        encoding = "base64"
    if encoding == "base64":
        payload, kind = base64.b64encode(shown).decode(), "base64"
    properties = dict(_shown_properties(message))
    return {
        "payload_bytes": len(body),
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "properties": properties or [],
        "payload": payload,
        "payload_encoding": kind,
    }


def _shown_properties(message: Message) -> Iterator[tuple[str, Any]]:
    for name in (*_TEXTS, *_INTEGERS, "headers"):
        value = getattr(message.properties, name, None)
        if value is not None:
            yield name, jsonable(value)


RESOURCES = (
    Resource("exchanges/{vhost}/{name}/publish", post=_publish),
    Resource("queues/{vhost}/{name}/get", post=_get),
)
