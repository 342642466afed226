"""What a proxy notes of each method that passes: see `connection`.

A handler looks at one method. It returns True to pass its frame, False to drop it, or other frames.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import method_frame
from fakeamqp.protocols.amqp_0_9_1.proxied.channel import Consumer, ProxiedChannel

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.proxied.connection import ProxiedConnection

_PRECONDITION_FAILED = 406

Handler = Callable[["ProxiedConnection", int, Any], "bool | bytes"]

# --- the client's methods ---------------------------------------------------------------------------------


def _start_ok(connection: ProxiedConnection, number: int, method: m.ConnectionStartOk) -> bool:
    connection.client_properties = method.client_properties
    parts = method.response.split(b"\0")
    if method.mechanism == "PLAIN" and len(parts) == 3:
        connection.user_name = parts[1].decode("utf-8", "replace")
    return True


def _tune_ok(connection: ProxiedConnection, number: int, method: m.ConnectionTuneOk) -> bool:
    connection.frame_max, connection.heartbeat = method.frame_max, method.heartbeat
    return True


def _open(connection: ProxiedConnection, number: int, method: m.ConnectionOpen) -> bool:
    connection.virtual_host_name = method.virtual_host
    return True


def _close_ok(connection: ProxiedConnection, number: int, method: Any) -> bool:
    connection.close_confirmed()
    return True


def _channel_open(connection: ProxiedConnection, number: int, method: m.ChannelOpen) -> bool:
    connection.channels[number] = ProxiedChannel(number)
    return True


def _channel_close(connection: ProxiedConnection, number: int, method: m.ChannelClose) -> bool:
    """One side closes the channel. Its number is free once the other has confirmed that."""
    channel = connection.channel(number)
    channel.open, channel.ending = False, True
    return True


def _channel_close_ok(connection: ProxiedConnection, number: int, method: Any) -> bool:
    connection.forget(connection.channel(number))
    return True


def _flow_ok(connection: ProxiedConnection, number: int, method: m.ChannelFlowOk) -> bool:
    channel = connection.channel(number)
    if not channel.awaited_flow_oks:
        return True
    channel.awaited_flow_oks -= 1
    return False


def _confirm_select(connection: ProxiedConnection, number: int, method: m.ConfirmSelect) -> bool:
    connection.channel(number).mode = "confirm"
    return True


def _tx_select(connection: ProxiedConnection, number: int, method: Any) -> bool:
    connection.channel(number).mode = "tx"
    return True


def _passes(connection: ProxiedConnection, number: int, method: Any) -> bool:
    return True


def _queue_declare(connection: ProxiedConnection, number: int, method: m.QueueDeclare) -> bool:
    if method.queue:
        connection.channel(number).queue = method.queue
    return True


def _exchange_declare(connection: ProxiedConnection, number: int, method: m.ExchangeDeclare) -> bool:
    if not method.passive:
        connection.exchange_types[method.exchange] = method.type
    return True


def _qos(connection: ProxiedConnection, number: int, method: m.BasicQos) -> bool:
    connection.channel(number).prefetch = (method.prefetch_count, method.prefetch_size)
    return True


def _consume(connection: ProxiedConnection, number: int, method: m.BasicConsume) -> bool:
    channel = connection.channel(number)
    consumer = Consumer(method.queue or channel.queue, method.no_ack)
    if method.no_wait:
        _consumer_added(connection, channel, method.consumer_tag, consumer)
    else:
        channel.asked.append((method.consumer_tag, consumer))
    return True


def _get(connection: ProxiedConnection, number: int, method: m.BasicGet) -> bool:
    channel = connection.channel(number)
    channel.asked.append(("", Consumer(method.queue or channel.queue, method.no_ack)))
    return True


def _cancel(connection: ProxiedConnection, number: int, method: m.BasicCancel) -> bool:
    """Without an answer, this is the end of the consumer as far as the proxy can tell."""
    return not method.no_wait or _consumer_ended(connection, number, method)


def _consumer_ended(
    connection: ProxiedConnection, number: int, method: m.BasicCancel | m.BasicCancelOk
) -> bool:
    """Until then, deliveries can be on their way. They are still to be settled."""
    channel = connection.channel(number)
    consumer = channel.consumers.pop(method.consumer_tag, None)
    if consumer is not None:
        _consumer_event(connection, channel, "consumer ended", method.consumer_tag, consumer)
    return True


def _settlement(event: str, kind: type[Method]) -> Handler:
    """A handler for a method that settles deliveries; `kind` makes one of a tag and `multiple`."""

    def settles(connection: ProxiedConnection, number: int, method: Any) -> bool | bytes:
        channel = connection.channel(number)
        multiple = bool(getattr(method, "multiple", False))
        tag = method.delivery_tag
        if not multiple and tag not in channel.held and channel.is_spare(tag):
            text = f"PRECONDITION_FAILED - unknown delivery tag {tag}"
            connection.close_channel(number, _PRECONDITION_FAILED, text, kind.INDEX)
            return False
        held, told = channel.settled(tag, multiple)
        what = "requeued" if getattr(method, "requeue", False) else event
        connection.settle(channel, what, held)
        if told is None:
            return True
        others = {
            name: getattr(method, name) for name, _ in kind.LAYOUT if name not in ("delivery_tag", "multiple")
        }
        frames = []
        for each, several in told:
            values = {**others, "delivery_tag": each}
            if hasattr(method, "multiple"):
                values["multiple"] = several
            frames.append(method_frame(number, kind(**values).encode()))
        return b"".join(frames) or False

    return settles


def _recover(connection: ProxiedConnection, number: int, method: Any) -> bool:
    channel = connection.channel(number)
    connection.settle(channel, "requeued", list(channel.held.items()))
    channel.held.clear()
    return True


FROM_CLIENT: dict[Any, Handler] = {
    m.ConnectionStartOk: _start_ok,
    m.ConnectionTuneOk: _tune_ok,
    m.ConnectionOpen: _open,
    m.ConnectionCloseOk: _close_ok,
    m.ChannelOpen: _channel_open,
    m.ChannelClose: _channel_close,
    m.ChannelCloseOk: _channel_close_ok,
    m.ChannelFlowOk: _flow_ok,
    m.ConfirmSelect: _confirm_select,
    m.TxSelect: _tx_select,
    m.ExchangeDeclare: _exchange_declare,
    m.QueueDeclare: _queue_declare,
    m.BasicQos: _qos,
    m.BasicPublish: _passes,
    m.BasicConsume: _consume,
    m.BasicGet: _get,
    m.BasicCancel: _cancel,
    m.BasicAck: _settlement("acked", m.BasicAck),
    m.BasicNack: _settlement("rejected", m.BasicNack),
    m.BasicReject: _settlement("rejected", m.BasicReject),
    m.BasicRecover: _recover,
    m.BasicRecoverAsync: _recover,
}


# --- the broker's methods ---------------------------------------------------------------------------------


def _open_ok(connection: ProxiedConnection, number: int, method: m.ConnectionOpenOk) -> bool:
    connection.opened = True
    connection.report_opened()
    return True


def _channel_open_ok(connection: ProxiedConnection, number: int, method: m.ChannelOpenOk) -> bool:
    channel = connection.channel(number)
    channel.open = not channel.ending
    return True


def _broker_channel_close_ok(connection: ProxiedConnection, number: int, method: Any) -> bool:
    connection.forget(connection.channel(number))
    return True


def _queue_declare_ok(connection: ProxiedConnection, number: int, method: m.QueueDeclareOk) -> bool:
    connection.channel(number).queue = method.queue
    return True


def _consume_ok(connection: ProxiedConnection, number: int, method: m.BasicConsumeOk) -> bool:
    channel = connection.channel(number)
    if channel.asked:
        _consumer_added(connection, channel, method.consumer_tag, channel.asked.popleft()[1])
    return True


def _get_empty(connection: ProxiedConnection, number: int, method: m.BasicGetEmpty) -> bool:
    channel = connection.channel(number)
    if channel.asked:
        channel.asked.popleft()
    return True


def _confirms(kind: type[Method], accepted: bool) -> Handler:
    def confirmed(connection: ProxiedConnection, number: int, method: Any) -> bool:
        channel = connection.channel(number)
        tap = connection.state.tap
        singly = tap is not None and tap.confirms_singly
        numbers = channel.confirmed(method.delivery_tag, method.multiple, singly=singly)
        if numbers is None:
            return True
        for each in numbers:
            connection.confirm(number, each, accepted=accepted)
        return False

    return confirmed


def _delivers(connection: ProxiedConnection, number: int, method: Any) -> bool | bytes:
    """A delivery gets the client's tag."""
    tag = connection.channel(number).client_tag(method.delivery_tag)
    if tag == method.delivery_tag:
        return True
    values = {name: getattr(method, name) for name, _ in method.LAYOUT}
    return method_frame(number, type(method)(**{**values, "delivery_tag": tag}).encode())


def _consumer_added(
    connection: ProxiedConnection, channel: ProxiedChannel, tag: str, consumer: Consumer
) -> None:
    channel.consumers[tag] = consumer
    _consumer_event(connection, channel, "consumer added", tag, consumer)


def _consumer_event(
    connection: ProxiedConnection, channel: ProxiedChannel, event: str, tag: str, consumer: Consumer
) -> None:
    tap = connection.state.tap
    if tap is not None:
        place = (consumer.queue, tag, connection.name, channel.number)
        prefetch = channel.prefetch[0]
        virtual_host = connection.virtual_host_name
        tap.event(event, None, None, *place, consumer.no_ack, prefetch, False, True, virtual_host)


FROM_BROKER: dict[Any, Handler] = {
    m.ConnectionOpenOk: _open_ok,
    m.ConnectionCloseOk: _close_ok,
    m.ChannelOpenOk: _channel_open_ok,
    m.ChannelClose: _channel_close,
    m.ChannelCloseOk: _broker_channel_close_ok,
    m.QueueDeclareOk: _queue_declare_ok,
    m.BasicConsumeOk: _consume_ok,
    m.BasicCancel: _consumer_ended,
    m.BasicCancelOk: _consumer_ended,
    m.BasicGetEmpty: _get_empty,
    m.BasicAck: _confirms(m.BasicAck, accepted=True),
    m.BasicNack: _confirms(m.BasicNack, accepted=False),
    m.BasicDeliver: _delivers,
    m.BasicGetOk: _delivers,
    m.BasicReturn: _passes,
}
