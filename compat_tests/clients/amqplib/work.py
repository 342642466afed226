"""Runs on a Python that has the client: does what a name asks for, on the broker at HOST:PORT.

    python3 work.py HOST:PORT NAME

It ends with a traceback where the broker did not do what was expected.
"""

from __future__ import annotations

import sys
from typing import Any

from amqplib import client_0_8 as amqp

PROPERTIES = {
    "content_type": "text/plain",
    "application_headers": {"text": "word", "number": 5},
    "delivery_mode": 2,
    "priority": 3,
    "correlation_id": "c",
    "reply_to": "answers",
    "expiration": "60000",
    "message_id": "m",
    "type": "t",
    "user_id": "guest",
    "app_id": "app",
}


def message(body: str, **properties: Any) -> Any:
    return amqp.Message(body, content_encoding="utf-8", **properties)


def round_trip(connection: Any) -> None:
    channel = connection.channel()
    channel.access_request("/data", active=True, write=True, read=True)
    channel.exchange_declare("events", "direct", auto_delete=False)
    channel.queue_declare("orders", auto_delete=False)
    channel.queue_bind("orders", "events", "created")
    body = "0123456789" * 20_000  # More than a frame.
    channel.basic_publish(message(body, **PROPERTIES), "events", "created")
    got: list[Any] = []
    tag = channel.basic_consume("orders", callback=got.append)
    while not got:
        channel.wait()
    (first,) = got
    assert first.body == body
    assert {name: getattr(first, name) for name in PROPERTIES} == PROPERTIES
    info = first.delivery_info
    told = (info["consumer_tag"], info["redelivered"], info["exchange"], info["routing_key"])
    assert told == (tag, False, "events", "created"), told
    channel.basic_ack(info["delivery_tag"])
    channel.basic_cancel(tag)
    channel.close()


def get_reject_recover(connection: Any) -> None:
    channel = connection.channel()
    channel.queue_declare("orders", auto_delete=False)
    assert channel.basic_get("orders") is None
    for body in ("first", "second"):
        channel.basic_publish(message(body), routing_key="orders")
    assert channel.basic_get("orders", no_ack=True).body == "first"
    second = channel.basic_get("orders")
    channel.basic_reject(second.delivery_info["delivery_tag"], requeue=True)
    again = channel.basic_get("orders")
    assert (again.body, again.delivery_info["redelivered"]) == ("second", True)
    channel.basic_recover(requeue=True)
    again = channel.basic_get("orders")
    channel.basic_ack(again.delivery_info["delivery_tag"])
    assert channel.queue_purge("orders") == 0
    channel.basic_publish(message("nowhere"), routing_key="nobody", mandatory=True)
    name, messages, consumers = channel.queue_declare("orders", passive=True)
    assert (name, messages, consumers) == ("orders", 0, 0)
    code, _, exchange, key, returned = channel.returned_messages.get(timeout=10)
    assert (exchange, key, returned.body) == ("", "nobody", "nowhere")
    assert code in (310, 312), code


def transactions(connection: Any) -> None:
    channel = connection.channel()
    channel.queue_declare("orders", auto_delete=False)
    channel.tx_select()
    for end, messages in ((channel.tx_rollback, 0), (channel.tx_commit, 1)):
        channel.basic_publish(message("first"), routing_key="orders")
        end()
        assert channel.queue_declare("orders", passive=True)[1] == messages


def errors(connection: Any) -> None:
    channel = connection.channel()
    try:
        channel.queue_declare("unknown", passive=True)
    except amqp.AMQPChannelException as error:
        assert error.amqp_reply_code == 404, error
    else:
        raise AssertionError("there is no such queue")
    channel = connection.channel()
    try:
        channel.exchange_declare("events", "unknown")
    except amqp.AMQPConnectionException as error:
        assert error.amqp_reply_code == 503, error
    else:
        raise AssertionError("there is no such type of exchanges")


WORK = {each.__name__: each for each in (round_trip, get_reject_recover, transactions, errors)}

if __name__ == "__main__":
    opened = amqp.Connection(sys.argv[1], connect_timeout=20)
    WORK[sys.argv[2]](opened)
    if WORK[sys.argv[2]] is not errors:  # That is closed then.
        opened.close()
