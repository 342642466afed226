"""The screenshots of docs/inspector.md: `python -m compat_tests.pages.screenshots`.

With a folder as argument, every view at 1 400 and 390 pixels, light and dark, and the page of the trace.

They show a small shop: its topology at work, a queue with its messages, a timeline, timers, a fault. With
Pillow they have 64 colours, which makes the files a third as large.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import pika

from compat_tests.pages.browser import Missing, launched
from fakeamqp import Broker
from fakeamqp.trace import Failure

FOLDER = Path(__file__).parents[2] / "docs" / "images"
WINDOW = {"width": 1180, "height": 560}
WINDOWS = ({"width": 1400, "height": 800}, {"width": 390, "height": 844})
Shot: TypeAlias = tuple[str, dict[str, int], str, Callable[[Any, Any], None]]
"""Its name, its window, its colours, and what leads to it."""


def main() -> int:
    """Write the files of the docs, or with a folder as argument every view in every size and scheme."""
    every = Path(sys.argv[1]) if sys.argv[1:] else None
    folder = every or FOLDER
    folder.mkdir(exist_ok=True, parents=True)
    try:
        with launched() as browser, Broker(management=True, clock="virtual", seed=7) as broker:
            clients = shop(broker)
            for name, window, scheme, show in every_view() if every else of_docs():
                context = browser.new_context(viewport=window, color_scheme=scheme, reduced_motion="reduce")
                page = context.new_page()
                page.goto(broker.admin.inspector_url)
                page.wait_for_selector("#live.on")
                show(page, clients[0])
                page.screenshot(path=(path := folder / f"inspector-{name}.png"))
                shrink(path)
                context.close()
            if every:
                of_trace(browser, broker, folder)
            for client in clients:
                client.connection.close()
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    for path in sorted(folder.glob("*.png" if every else "inspector-*.png")):
        print(f"{path.name}: {path.stat().st_size // 1024} KiB")
    return 0


def of_docs() -> Iterator[Shot]:
    """The screenshots of docs/inspector.md."""
    for name, (scheme, show) in SHOTS.items():
        yield name, WINDOW, scheme, show


def every_view() -> Iterator[Shot]:
    """All of them, in a wide and in a narrow window, light and dark."""
    for window, scheme in product(WINDOWS, ("light", "dark")):
        for name, (_, show) in SHOTS.items():
            yield f"{name}-{window['width']}-{scheme}", window, scheme, show


def of_trace(browser: Any, broker: Broker, folder: Path) -> None:
    """The page of the trace: all of it, the story of a message, and a failed test."""
    failure = Failure(
        "tests/test_orders.py::test_invoice_is_paid",
        "assert 5 == 0\n +  where 5 = <queue 'invoices'>.unacked",
        "test_orders.py",
        tuple(inspect.getsource(topology).rstrip().splitlines()),
        12,
        14,
        len(broker.trace.events),
    )
    for name, address, failed in (("all", "", None), ("story", "#message=1", None), ("failure", "", failure)):
        broker.trace.html(folder / "trace.html", title="test_orders", failure=failed)
        for window, scheme in product(WINDOWS, ("light", "dark")):
            context = browser.new_context(viewport=window, color_scheme=scheme)
            page = context.new_page()
            page.goto((folder / "trace.html").as_uri() + address)
            page.wait_for_selector("body[data-ready]", state="attached")
            page.screenshot(path=folder / f"trace-{name}-{window['width']}-{scheme}.png")
            context.close()


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
    order(web, 30, "paid")
    page.click("#tab-timeline")
    page.wait_for_selector('#line-list .row[aria-label*="order.1030"]')
    page.uncheck("#kinds label:has-text('Heartbeats') input")
    page.click('#line-list .row[aria-label*="basic.publish"][aria-label*="order.1030"] >> nth=-1')
    page.wait_for_selector("#detail pre")


def story(page: Any, web: Any) -> None:
    method, _, _ = web.basic_get("mails")
    web.basic_reject(method.delivery_tag, requeue=False)
    page.click("#tab-messages")
    page.check("#outcomes input[value='dead-lettered']")
    page.click("#outcome-list .row >> nth=0")
    page.wait_for_selector("#detail .story")


def faults(page: Any, web: Any) -> None:
    page.click("#tab-faults")
    page.wait_for_selector("#fault-action option", state="attached")
    page.fill("#fault-method", "confirm")
    page.select_option("#fault-action", "delay")
    web.basic_publish("orders", "order.1001.refunded", b"")
    web.basic_publish("orders", "order.1002.refund", b"")
    page.wait_for_function("() => /^[1-9]/.test(document.querySelector('#rules .hits').innerText)")


def time(page: Any, web: Any) -> None:
    page.click("#tab-time")
    page.wait_for_selector("#timer-list .row")


SHOTS: dict[str, tuple[str, Callable[[Any, Any], None]]] = {
    "topology": ("light", topology),
    "queue": ("light", queue),
    "story": ("light", story),
    "timeline": ("dark", timeline),
    "time": ("light", time),
    "faults": ("dark", faults),
}


if __name__ == "__main__":
    sys.exit(main())
