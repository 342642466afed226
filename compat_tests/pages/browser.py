"""Chromium under Playwright, for tests and for the screenshots of the docs, and what tests do with pages."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import pika

from fakeamqp import Broker

__all__ = [
    "NAMES",
    "Missing",
    "Open",
    "busy",
    "chromium",
    "launched",
    "node",
    "text",
    "wait_for_text",
]

Open: TypeAlias = Callable[..., Any]
"""Opens the inspector of a broker; see conftest.py."""

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


class Missing(Exception):
    """Chromium or Playwright is not installed; the text says which."""


def chromium() -> str:
    """The path of the browser.

    Raises:
        Missing: there is none.
    """
    for name in NAMES:
        if found := shutil.which(name):
            return found
    raise Missing("no Chromium is installed")


@contextmanager
def launched(*further: str) -> Iterator[Any]:
    """The browser, without a window, with further options of its command line.

    Raises:
        Missing: it cannot be had.
    """
    path = chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise Missing("Playwright is not installed") from None
    with sync_playwright() as playwright:
        # The tests may run as root and with a small /dev/shm, as in a container.
        options = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", *further]
        browser = playwright.chromium.launch(executable_path=path, args=options)
        try:
            yield browser
        finally:
            browser.close()


def busy(broker: Broker, channel: Any) -> None:
    """A small topology with messages in all states."""
    channel.exchange_declare("orders", "topic")
    channel.exchange_declare("dead", "fanout")
    channel.queue_declare("invoices", durable=True, arguments={"x-dead-letter-exchange": "dead"})
    channel.queue_declare("failed", durable=True, arguments={"x-queue-type": "quorum"})
    channel.queue_bind("invoices", "orders", "order.*")
    channel.queue_bind("failed", "dead", "")
    for number in range(10):
        properties = pika.BasicProperties(headers={"tenant": "acme"}, content_type="application/json")
        body = json.dumps({"id": number, "total": 84.0}).encode()
        channel.basic_publish("orders", "order.new", body, properties)
    channel.basic_qos(prefetch_count=3)
    channel.basic_consume("invoices", lambda *_: None, consumer_tag="worker")
    broker.queue("invoices").wait_for(ready=7, unacked=3)


def text(page: Any, selector: str) -> str:
    found: str = page.inner_text(selector)
    return found


def wait_for_text(page: Any, selector: str, wanted: str) -> None:
    page.wait_for_function(
        "([selector, wanted]) => [...document.querySelectorAll(selector)].some("
        "(each) => each.innerText.includes(wanted))",
        arg=[selector, wanted],
    )


def node(name: str) -> str:
    return f'.node[aria-label*="{name}"]'
