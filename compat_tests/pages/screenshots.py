"""The screenshots of docs/inspector.md: `python -m compat_tests.pages.screenshots`.

They show a small shop: its topology at work, a queue with its messages, a timeline, timers, a fault. With
Pillow they have 64 colours, which makes the files a third as large.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pika

from compat_tests.pages.browser import Missing, launched
from fakeamqp import Broker

FOLDER = Path(__file__).parents[2] / "docs" / "images"
WINDOW = {"width": 1180, "height": 560}


def main() -> int:
    """Write the files; returns the exit code."""
    FOLDER.mkdir(exist_ok=True)
    try:
        with launched() as browser, Broker(management=True, clock="virtual", seed=7) as broker:
            clients = shop(broker)
            for name, (scheme, show) in SHOTS.items():
                context = browser.new_context(viewport=WINDOW, color_scheme=scheme, reduced_motion="reduce")
                page = context.new_page()
                page.goto(broker.admin.inspector_url)
                page.wait_for_selector("#live.on")
                show(page, clients[0])
                page.screenshot(path=(path := FOLDER / f"inspector-{name}.png"))
                shrink(path)
                context.close()
            for client in clients:
                client.connection.close()
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    for path in sorted(FOLDER.glob("inspector-*.png")):
        print(f"{path.name}: {path.stat().st_size // 1024} KiB")
    return 0


def shrink(path: Path) -> None:
    """Reduce the number of colours, if it can be done here."""
    try:
        from PIL import Image
    except ImportError:
        return
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(64, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def shop(broker: Broker) -> list[Any]:
    """Clients, queues and messages."""
    channels = []
    for name in ("web", "billing", "warehouse"):
        parameters = pika.ConnectionParameters(
            broker.host, broker.port, client_properties={"connection_name": name}
        )
        channels.append(pika.BlockingConnection(parameters).channel())
    web, billing, warehouse = channels
    web.exchange_declare("orders", "topic", durable=True)
    web.exchange_declare("orders.failed", "fanout", durable=True)
    web.exchange_declare("audit", "fanout", durable=True)
    web.exchange_bind("audit", "orders", "#")
    arguments = {"x-dead-letter-exchange": "orders.failed", "x-message-ttl": 90_000}
    for name, key in (("invoices", "order.*.paid"), ("shipping", "order.*.paid"), ("mails", "order.#")):
        web.queue_declare(name, durable=True, arguments=arguments)
        web.queue_bind(name, "orders", key)
    web.queue_declare("failed", durable=True, arguments={"x-queue-type": "quorum"})
    web.queue_bind("failed", "orders.failed", "")
    web.queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})
    web.queue_bind("log", "audit", "")
    for channel, queue, tag, prefetch in (
        (billing, "invoices", "billing-1", 5),
        (warehouse, "shipping", "packing", 1),
        (warehouse, "shipping", "labels", 1),
    ):
        channel.basic_qos(prefetch_count=prefetch)
        channel.basic_consume(queue, lambda *_: None, consumer_tag=tag)
    for number in range(24):
        order(web, number, "paid" if number % 3 else "cancelled")
    broker.faults.on("basic.publish", routing_key="order.*.refunded", optional=True).times(3).nack()
    broker.queue("invoices").wait_for(unacked=5)
    return channels


def order(channel: Any, number: int, event: str) -> None:
    """Publish one event."""
    body = {"order": 1000 + number, "total": 12.5 * (number + 1), "lines": [{"sku": "apple", "count": 2}]}
    properties = pika.BasicProperties(
        headers={"tenant": "acme", "attempt": 1},
        content_type="application/json",
        message_id=f"m-{1000 + number}",
        delivery_mode=2,
    )
    channel.basic_publish("orders", f"order.{1000 + number}.{event}", json.dumps(body).encode(), properties)


def topology(page: Any, web: Any) -> None:
    page.wait_for_selector('.node[aria-label^="queue invoices"]')
    page.evaluate("document.activeElement.blur()")


def queue(page: Any, web: Any) -> None:
    page.click("#tab-queues")
    page.click('#queue-list .row[aria-label^="queue invoices"]')
    page.click("#detail .messages .row >> nth=2")
    page.wait_for_selector("#detail .one pre")


def timeline(page: Any, web: Any) -> None:
    web.queue_declare("invoices", passive=True)
    page.click("#tab-timeline")
    page.wait_for_selector("#line-list .row")
    page.uncheck("#kinds label:has-text('Heartbeats') input")
    page.click('#line-list .row[aria-label*="basic.publish"] >> nth=-1')
    page.wait_for_selector("#detail pre")


def faults(page: Any, web: Any) -> None:
    page.click("#tab-faults")
    page.wait_for_selector("#fault-action option", state="attached")
    page.fill("#fault-method", "confirm")
    page.select_option("#fault-action", "delay")
    web.basic_publish("orders", "order.1001.refunded", b"")
    web.basic_publish("orders", "order.1002.refund", b"")
    page.wait_for_function("() => document.querySelector('#rules .hits').innerText.startsWith('1')")


def time(page: Any, web: Any) -> None:
    page.click("#tab-time")
    page.wait_for_selector("#timer-list .row")


SHOTS: dict[str, tuple[str, Callable[[Any, Any], None]]] = {
    "topology": ("light", topology),
    "queue": ("light", queue),
    "timeline": ("dark", timeline),
    "time": ("light", time),
    "faults": ("dark", faults),
}


if __name__ == "__main__":
    sys.exit(main())
