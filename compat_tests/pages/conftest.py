"""The browser, a broker, a client, and the inspector of the broker in a window of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pika
import pytest

from compat_tests.pages.browser import Missing, Open, busy, launched
from fakeamqp import Broker


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    # Of this module alone: Playwright keeps an event loop running in the thread, and other tests need theirs.
    try:
        with launched() as browser:
            yield browser
    except Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(management=True, clock="virtual") as broker:
        yield broker


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Opens the inspector of a broker. An error or a warning on the browser's console fails the test, and so
    does a request to anything but the broker: the page works offline.
    """
    contexts, problems = [], []

    def said(message: Any) -> None:
        # Chromium tells of every answer that is an error, and of refused connections.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            problems.append(message.text)

    def asked(request: Any, page: Any) -> None:
        own = urlsplit(page.own)
        if request.url.startswith(("http:", "https:")) and urlsplit(request.url).netloc != own.netloc:
            problems.append(f"asked for {request.url}")

    def opened(broker: Broker, address: str | None = None, **settings: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **settings})
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", said)
        page.on("request", lambda request: asked(request, page))
        page.problems = problems
        page.own = broker.admin.inspector_url if address is None else address
        page.goto(page.own)
        if address is None:
            page.wait_for_selector("#live.on")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not problems


@pytest.fixture
def channel(broker: Broker) -> Iterator[Any]:
    parameters = pika.ConnectionParameters(
        broker.host, broker.port, client_properties={"connection_name": "billing"}
    )
    connection = pika.BlockingConnection(parameters)
    yield connection.channel()
    with suppress(pika.exceptions.AMQPError):
        connection.close()


@pytest.fixture
def topology(broker: Broker, channel: Any) -> None:
    busy(broker, channel)


@pytest.fixture
def page(open_page: Open, broker: Broker) -> Any:
    """The inspector of `broker`; with `topology` before it, it is busy by then."""
    return open_page(broker)
