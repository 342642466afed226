"""Class message: transfers in both directions by request and response, inline and by reference.

Its methods must be sent in requests. The specification shows no other way: without the number of a request,
an ok could not be assigned to a transfer (message/request-frames). A transfer from the client is answered
once the broker has the message: with ok, or with reject if no queue accepted it. A transfer that names a
reference is published and answered when the reference is closed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.subscription import Credit
from fakeamqp.model.errors import NotAllowed, PreconditionFailed
from fakeamqp.model.limits import check_consumer_bound
from fakeamqp.model.messages.message import Message
from fakeamqp.model.transactions import PlannedPublish
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.message_state import Messages
from fakeamqp.protocols.amqp_0_9.property_mapping import from_transfer
from fakeamqp.protocols.amqp_0_9.requests import Requests
from fakeamqp.protocols.amqp_0_9_1.basic import send_again
from fakeamqp.protocols.amqp_0_9_1.publishing import too_large
from fakeamqp.protocols.amqp_0_9_1.replies import short_text

if TYPE_CHECKING:
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.routing import Outcome
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

_GENERIC = 0
_NOT_IMMEDIATE = 1
"""Reject codes (domain.reject-code/01)."""


def transfer(channel: Amqp09Channel, method: m.MessageTransfer) -> None:
    """Publish a message to the exchange that the destination names; a blank name is the default exchange.

    Sources: message.transfer/destination-missing, message.transfer/destination-02,
    message.transfer/ticket-01.
    """
    channel.connection.publish_received()
    requests = channel.class_state(Requests)
    assert requests.current is not None
    channel.authorise_publish(method.ticket, method.destination, method.routing_key)
    properties = from_transfer(method, requests.current.method, channel.connection.grammar)
    _check_user_id(channel, properties)
    if method.body.by_reference:
        reference = channel.class_state(Messages).references.find(method.body.octets)
        number = requests.defer()  # It is answered when the reference is closed (message.close/01).
        reference.waiting.append(partial(_publish, channel, method, properties, number))
    else:
        _publish(channel, method, properties, requests.defer(), method.body.octets)


def _check_user_id(channel: Amqp09Channel, properties: BasicProperties) -> None:
    """Check that user-id names the publisher, unless it has the tag impersonator, as in class basic."""
    user, user_id = channel.user, properties.user_id
    if user_id is None or user_id == user.name or not channel.personality.checks_user_id:
        return
    if "impersonator" not in user.tags:
        raise PreconditionFailed(f"user-id is set to '{user_id}' but authenticated user was '{user.name}'")


def _publish(
    channel: Amqp09Channel, method: m.MessageTransfer, properties: BasicProperties, number: int, body: bytes
) -> None:
    """Publish a message, now or at commit, and answer the request of this number.

    In a transaction the answer does not wait for the commit: a message without a queue is rejected at once
    and is not part of the transaction; any other message is answered with ok.
    """
    largest = channel.personality.largest_message
    if largest and len(body) > largest:
        raise too_large(channel, len(body))
    virtual_host = channel.virtual_host
    now = channel.connection.broker.clock.time()
    message = Message(
        method.destination,
        method.routing_key,
        properties.replace(timestamp=int(now)),  # message.transfer/timestamp
        body,
        publisher=channel.connection.identity,
        expiry=method.ttl / 1000 if method.ttl else None,
        published_at=now,
    )
    message.secured = True
    transaction = channel.transaction
    requests = channel.class_state(Requests)
    if transaction is None:
        outcome = virtual_host.publish(message, immediate=method.immediate, mandatory=True, sliced=True)

        def answer() -> None:
            requests.answer(number, _answer(channel, message, outcome))
            if channel.connection.busy:  # It is late: no turn of the client follows.
                requests.flush()

        channel.connection.broker.operations.then(answer, channel.connection)
        return
    message, plan = virtual_host.routing.plan(message)
    unconsumed = method.immediate and not any(queue.could_take(message) for queue in plan.queues)
    if unconsumed or not (plan.queues or plan.delays):
        requests.answer(number, _answer(channel, message, plan, unconsumed=unconsumed))
        return
    transaction.publish(PlannedPublish(virtual_host, message, plan))
    requests.answer(number, m.MessageOk())


def _answer(
    channel: Amqp09Channel, message: Message, outcome: Outcome, *, unconsumed: bool = False
) -> Method:
    """Return the answer to the publisher for the outcome of a message (message.transfer/immediate-01)."""
    if outcome.refused:
        return m.MessageReject(code=_GENERIC, text=short_text(str(outcome)))
    if outcome.queues and not (outcome.unconsumed or unconsumed):
        return m.MessageOk()
    if outcome.delays and not outcome.queues:
        return m.MessageOk()
    code, text = (_NOT_IMMEDIATE, "NO_CONSUMERS") if outcome.queues else (_GENERIC, "NO_ROUTE")
    channel.virtual_host.message_outcomes.returned(message, code, text, channel.number)
    return m.MessageReject(code=code, text=text)


# --- references --------------------------------------------------------------------------------------


def open_(channel: Amqp09Channel, method: m.MessageOpen) -> None:
    """Open a reference. This and the next functions raise the errors of the same method of `References`."""
    channel.class_state(Messages).references.open(method.reference)
    channel.send(m.MessageOk())


def append(channel: Amqp09Channel, method: m.MessageAppend) -> None:
    """Append to the body of a reference."""
    channel.connection.publish_received()
    channel.class_state(Messages).references.append(method.reference, method.octets)
    channel.send(m.MessageOk())


def close(channel: Amqp09Channel, method: m.MessageClose) -> None:
    """Close a reference, and publish the transfers that name it, in their order."""
    requests = channel.class_state(Requests)
    reference = channel.class_state(Messages).references.close(method.reference)
    number = requests.defer()
    body = bytes(reference.octets)
    for publish in reference.waiting:
        publish(body)
    requests.answer(number, m.MessageOk())


def checkpoint(channel: Amqp09Channel, method: m.MessageCheckpoint) -> None:
    """Keep the current body of a reference, so that it can be resumed."""
    channel.class_state(Messages).references.checkpoint(method.reference, method.identifier)
    channel.send(m.MessageOk())


def resume(channel: Amqp09Channel, method: m.MessageResume) -> None:
    """Open a reference with the body of its last checkpoint, and answer with its size."""
    offset = channel.class_state(Messages).references.resume(method.reference, method.identifier)
    channel.send(m.MessageOffset(value=offset))


# --- destinations ------------------------------------------------------------------------------------


def consume(channel: Amqp09Channel, method: m.MessageConsume) -> None:
    """Start a consumer, and answer; raises the errors of `subscribe`."""
    queue = subscribe(channel, method)
    channel.send(m.MessageOk())
    queue.dispatch()


def subscribe(channel: Amqp09Channel, method: m.MessageConsume) -> Queue:
    """Start a consumer without an answer, and return the queue, for the caller to dispatch.

    The destination may be blank, but no other consumer of the connection may have it
    (message.consume/destination-01). Source of exclusive access: message.consume/exclusive-01.
    """
    messages = channel.class_state(Messages)
    queue = channel.readable_queue(method.ticket, method.queue)
    check_consumer_bound(channel.connection.broker, len(channel.consumers))
    if channel.connection.uses_tag(method.destination):
        raise NotAllowed(f"destination '{method.destination}' is in use")
    channel.subscribe(queue, method.destination, messages, method, () if method.no_ack else messages.credits)
    return queue


def cancel(channel: Amqp09Channel, method: m.MessageCancel) -> None:
    """Cancel the consumer of a destination (message.cancel/stops), also after its queue was deleted.

    Messages sent to it can still be acknowledged. An unknown destination is confirmed too, but not that of
    another consumer of the connection (message.consume/destination-02).
    """
    name = method.destination
    subscription = channel.consumers.get(name)
    if subscription is not None and isinstance(subscription.subscriber, Messages):
        del channel.consumers[name]
        channel.end_consumer(subscription)
    elif channel.connection.uses_tag(name):
        raise NotAllowed(f"destination '{name}' is in use by another consumer of the connection")
    channel.send(m.MessageOk())


def get(channel: Amqp09Channel, method: m.MessageGet) -> None:
    """Send one message to a destination, or message.empty if the queue has none (message.get/*)."""
    queue = channel.readable_queue(method.ticket, method.queue)
    channel.check_get(queue)
    taken = queue.get(channel.connection, no_ack=method.no_ack, group=channel, content_class="basic")
    if taken is None:
        channel.send(m.MessageEmpty())
        return
    channel.send(m.MessageOk())
    queued, delivery = taken
    channel.class_state(Messages).transfer(
        method.destination,
        queue.name,
        queue.as_delivered(queued),
        queued.redelivered,
        delivery,
        consumer=False,
    )


def recover(channel: Amqp09Channel, method: m.MessageRecover) -> None:
    """Redeliver unacknowledged messages to their destination, or requeue them (message.recover/*).

    Redeliveries are new requests. Late answers to the old requests have no effect. Not allowed in a
    transaction (message.recover/02).
    """
    if channel.mode is not None:
        raise PreconditionFailed("message.recover is not allowed on a transactional channel; use tx.rollback")
    outstanding = channel.class_state(Messages).ledger.take_all()
    channel.note_settled("requeued", outstanding)
    channel.send(m.MessageOk())
    send_again(outstanding, method.requeue)


def qos(channel: Amqp09Channel, method: m.MessageQos) -> None:
    """Set the prefetch limit of the channel's destinations, or of all on the connection.

    Existing destinations and their unacknowledged messages are included. 0 means no limit. The limit of bytes
    never stops a message while none is unacknowledged (message.qos/prefetch-size-01).
    """
    connection, messages = channel.connection, channel.class_state(Messages)
    if method.global_:
        credit = connection.message_credit
        if credit is None:
            credit = connection.message_credit = Credit()
            for each in connection.channels.values():
                each.class_state(Messages).share(credit)
    else:
        credit = messages.credit
        if credit is None:
            credit = messages.credit = Credit()
            messages.share(credit)
    credit.resize(method.prefetch_count, method.prefetch_size)
    channel.send(m.MessageOk())
    if credit.open:
        credit.resume()
