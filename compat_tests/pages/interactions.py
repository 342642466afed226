"""How long interactions with a large broker take: `python -m compat_tests.pages.interactions`.

1 000 queues, 10 000 messages in one of them, and a client that keeps publishing. The times are those of the
browser's Event Timing: from the key or click until the next paint, in steps of 8 ms. Its figures are in
docs/inspector.md; no test depends on them.
"""

from __future__ import annotations

import sys
import threading
from statistics import median
from typing import Any

import pika

from compat_tests.pages.browser import Missing, launched
from fakeamqp import Broker

_OBSERVE = """
window.taken = [];
new PerformanceObserver((list) => { for (const each of list.getEntries()) window.taken.push(each.duration); })
  .observe({ type: "event", durationThreshold: 16, buffered: true });
"""
_ROUNDS = 5


def main() -> int:
    """Print a table; returns the exit code."""
    ended = threading.Event()
    try:
        with launched() as browser, Broker(management=True) as broker:
            fill(broker)
            publisher = threading.Thread(target=publish, args=(broker.url, ended))
            publisher.start()
            try:
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                page.add_init_script(_OBSERVE)
                page.goto(broker.admin.inspector_url)
                page.wait_for_selector("#live.on")
                page.wait_for_selector(".node")
                measure(page)
            finally:
                ended.set()
                publisher.join()
            print(f"{len(broker.published)} messages were published")
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


def fill(broker: Broker) -> None:
    """Declare 1 000 queues, and publish 10 000 messages to the first."""
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.exchange_declare("events", "topic")
        for number in range(1000):
            channel.queue_declare(f"queue-{number}", durable=True)
            channel.queue_bind(f"queue-{number}", "events", f"key.{number}")
        for number in range(10_000):
            broker.publish(f"message {number}", routing_key="queue-0", headers={"n": number})


def publish(url: str, ended: threading.Event) -> None:
    """Publish some hundred messages a second, until the end."""
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        number = 0
        while not ended.wait(0.01):
            for _ in range(5):
                channel.basic_publish("events", f"key.{number % 1000}", b"more")
                number += 1


def measure(page: Any) -> None:
    """Do everything some times."""
    keys = page.keyboard.press

    def messages() -> None:
        page.focus("#detail .messages .list")
        keys("PageDown")

    steps: list[tuple[str, Any]] = [
        ("open the topology", lambda: page.click("#tab-topology")),
        ("show 200 more queues in the graph", lambda: page.click("#more-queues")),
        ("choose a node of the graph", lambda: page.click(".node.queue >> nth=3")),
        ("zoom the graph", lambda: page.click("#zoom-in")),
        ("fit the graph", lambda: page.click("#fit")),
        ("original size of the graph", lambda: page.click("#zoom")),
        ("filter the graph by one character", lambda: page.type("#graph-filter", "7")),
        ("open the queues", lambda: page.click("#tab-queues")),
        ("sort 1 000 queues", lambda: page.click("#queue-heads >> text=Ready")),
        ("filter 1 000 queues by one character", lambda: page.type("#queue-filter", "0")),
        ("go to the last queue", lambda: (page.focus("#queue-list"), keys("End"))),
        ("open the queue of 10 000 messages", lambda: (keys("Home"), keys("Enter"))),
        ("go a page of messages further", messages),
        ("choose a message", lambda: page.click("#detail .messages .row >> nth=2")),
        ("go to the last message", lambda: (page.focus("#detail .messages .list"), keys("End"))),
        ("open the messages", lambda: page.click("#tab-messages")),
        ("filter 10 000 messages by one character", lambda: page.type("#outcome-filter", "9")),
        ("open a message with its story", lambda: page.click("#outcome-list .row >> nth=3")),
        ("open the timeline", lambda: page.click("#tab-timeline")),
        ("filter the timeline by one character", lambda: page.type("#line-filter", "b")),
        ("choose an event", lambda: page.click("#line-list .row >> nth=4")),
        ("pause", lambda: page.click("#pause")),
        ("go on", lambda: page.click("#pause")),
        ("open the time", lambda: page.click("#tab-time")),
        ("open the faults", lambda: page.click("#tab-faults")),
    ]
    times: dict[str, list[float]] = {name: [] for name, _ in steps}
    for _ in range(_ROUNDS):
        page.keyboard.press("Escape")
        for selector in ("#graph-filter", "#queue-filter", "#outcome-filter", "#line-filter"):
            page.evaluate(
                "(selector) => { const box = document.querySelector(selector); box.value = '';"
                "box.dispatchEvent(new Event('input')); }",
                selector,
            )
        for name, step in steps:
            page.evaluate("window.taken.length = 0")
            step()
            page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 60)))")
            times[name].append(max(page.evaluate("window.taken"), default=16))
    print(f"{'interaction':40} {'median':>7} {'longest':>7}  ms")
    for name, taken in times.items():
        print(f"{name:40} {median(taken):7.0f} {max(taken):7.0f}")


if __name__ == "__main__":
    sys.exit(main())
