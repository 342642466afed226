"""The command `demo`."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def add(commands: Any) -> None:
    """Add the command."""
    demo = commands.add_parser(
        "demo", help="show in a few seconds how the broker behaves (needs fakeamqp[pika])"
    )
    demo.set_defaults(run=_demo)


def _demo(_: argparse.Namespace) -> int:
    try:
        import pika
        import pika.exceptions
    except ImportError:
        print(
            "fakeamqp demo: the demo uses pika; install it with: pip install 'fakeamqp[pika]'",
            file=sys.stderr,
        )
        return 1
    from fakeamqp import Broker

    with Broker() as broker:
        print(f"A broker runs in this process, at {broker.url}")
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        print("pika is connected to it over a socket, as to RabbitMQ.\n")

        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("greetings", durable=True)
        for body in (b"good morning", b"good day", b"good night"):
            channel.basic_publish("", "greetings", body, pika.BasicProperties(delivery_mode=2))
        print("pika published three messages, and the broker confirmed each of them.")
        print(f"The test sees: {broker.queue('greetings')!r}\n")

        method, _properties, body = channel.basic_get("greetings")
        channel.basic_nack(method.delivery_tag, requeue=True)
        method, _properties, again = channel.basic_get("greetings")
        print(f"A client got {body!r} and requeued it; it came again with redelivered={method.redelivered}.")
        channel.basic_ack(method.delivery_tag)
        assert again == body

        try:
            channel.queue_declare("no-such-queue", passive=True)
        except pika.exceptions.ChannelClosedByBroker as error:
            print(f"An error gets RabbitMQ's answer: {error.reply_code} {error.reply_text}\n")
        connection.close()

        broker.restart()
        print("The broker has restarted on the same port. Durable queues and persistent messages are kept:")
        print(f"The test sees: {broker.queue('greetings')!r}\n")

        lines = broker.trace.timeline().splitlines()
        print("The end of the timeline, as the report of a failing test shows it:")
        print("\n".join(f"    {line}" for line in lines[-12:]))
    print("\nThe broker has stopped. Its port, sockets and threads are gone.")
    return 0
