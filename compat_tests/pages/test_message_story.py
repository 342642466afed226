"""What the inspector and the page of a trace show alike: stories of messages, real time, failures, words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from compat_tests.pages.browser import Open, text, wait_for_text
from fakeamqp import Broker
from fakeamqp.trace import Trace
from fakeamqp.trace.failure import Failure

STORY = ["published", "enqueued", "delivered", "rejected", "dead-lettered", "enqueued", "expired", "dropped"]
FAILURE = Failure(
    "tests/test_orders.py::test_expiry",
    "AssertionError: assert 0 == 1",
    "test_orders.py",
    ("def test_expiry(amqp_broker):", '    assert amqp_broker.queue("late").ready == 1'),
    7,
    8,
    30,
)


def eventful(broker: Broker, channel: Any) -> int:
    """A message that is rejected, dead-lettered and expired; returns its number."""
    channel.exchange_declare("dead", "fanout")
    channel.queue_declare("orders", arguments={"x-dead-letter-exchange": "dead"})
    channel.queue_declare("late", arguments={"x-message-ttl": 60_000})
    channel.queue_bind("late", "dead", "")
    properties = pika.BasicProperties(headers={"tenant": "acme"}, delivery_mode=2)
    channel.basic_publish("", "orders", b'{"id": 1}', properties)
    method, _, _ = channel.basic_get("orders")
    channel.basic_reject(method.delivery_tag, requeue=False)
    broker.queue("late").wait_for(ready=1)
    broker.clock.advance(90)
    [published] = broker._state.published or ()
    return int(published.message.number)


Show = Callable[..., Any]


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Show]:
    """Opens the page of a trace from a file; an error on the console fails the test."""
    contexts, problems = [], []

    def shown(trace: Trace, address: str = "", failure: Failure | None = None, **settings: Any) -> Any:
        trace.html(tmp_path / "trace.html", title="a test", failure=failure)
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **settings})
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.goto((tmp_path / "trace.html").as_uri() + address)
        page.wait_for_selector("body[data-ready]", state="attached")
        return page

    yield shown
    for context in contexts:
        context.close()
    assert not problems


def steps(page: Any) -> list[str]:
    page.wait_for_selector("#detail .story")
    return [str(each) for each in page.locator("#detail .story b").all_inner_texts()]


def test_link_to_message_shows_same_story_on_inspector_and_trace_page(
    open_page: Open, show: Show, broker: Broker, channel: Any
):
    message = eventful(broker, channel)
    inspector = open_page(broker, f"{broker.admin.inspector_url.partition('#')[0]}#message={message}")
    inspector.fill("#login-name", "guest")
    inspector.fill("#login-password", "guest")
    inspector.keyboard.press("Enter")
    trace = show(broker.trace, f"#message={message}")
    assert steps(inspector) == steps(trace) == STORY
    told = [text(page, "#detail .story").replace("billing", "c1") for page in (inspector, trace)]
    assert told[0] == told[1]
    assert "because it was rejected" in told[0] and "+60.0 s" in told[0]
    # On the page of the trace, the other rows are left out.
    rows = trace.locator("#list .row").count()
    assert rows == int(trace.get_attribute("body", "data-shown")) >= len(STORY)


def test_click_on_event_and_step_goes_through_story_and_back(
    open_page: Open, show: Show, broker: Broker, channel: Any
):
    message = eventful(broker, channel)
    page = show(broker.trace)
    page.click('#list .row[aria-label*="basic.publish"]')
    assert steps(page) == STORY
    page.click("#detail .story button >> nth=4")
    wait_for_text(page, "#detail h2", "dead-lettered")
    page.go_back()
    wait_for_text(page, "#detail h2", "basic.publish")
    page.click(f"#detail a[href='#message={message}']")
    wait_for_text(page, "#detail h2", f"Message {message}")
    page.go_back()
    wait_for_text(page, "#detail h2", "basic.publish")

    page = open_page(broker)
    page.click("#tab-timeline")
    page.click('#line-list .row[aria-label*="basic.publish"]')
    page.click(f"#detail >> text=Story of message {message}")
    assert steps(page) == STORY
    assert f"message={message}" in page.url
    page.click("#detail .story button >> nth=4")
    wait_for_text(page, "#detail h2", "dead-lettered")
    # The step is marked in the timeline.
    page.wait_for_selector('#line-list .row.picked[aria-label*="dead-lettered"]')
    page.go_back()
    assert steps(page) == STORY


def test_trace_without_publish_of_message_says_that_its_story_is_incomplete(
    show: Show, broker: Broker, channel: Any
):
    message = eventful(broker, channel)
    events = broker.trace.events
    later = [event for event in events if event.name in ("expired", "dropped")]
    page = show(Trace.of(later, dropped=5), f"#message={message}")
    assert steps(page) == ["expired", "dropped"]
    wait_for_text(page, "#detail", "2 steps; the trace no longer has the earlier ones")


def test_real_time_is_second_column_where_clock_is_virtual(
    open_page: Open, show: Show, broker: Broker, channel: Any
):
    eventful(broker, channel)
    page = show(broker.trace)
    assert page.is_visible(".h-real")
    last = page.locator("#list .row >> nth=0").locator(".real").inner_text()
    assert float(last) > 0
    page = open_page(broker)
    page.click("#tab-timeline")
    page.wait_for_selector("#line-list .row")
    assert page.is_visible("#view-timeline .heads .of-real")
    row = page.locator('#line-list .row[aria-label*="expired"]').locator("span")
    assert row.nth(0).inner_text() == "60.000"
    assert 0 < float(row.nth(1).inner_text()) < 60
    with Broker(management=True) as other:
        page = open_page(other)
        other.publish(b"", routing_key="nowhere")
        page.click("#tab-timeline")
        page.wait_for_selector("#line-list .row")
        assert not page.is_visible("#view-timeline .heads .of-real")


def test_trace_page_of_failed_test_opens_at_failure_with_assertion_and_source(
    show: Show, broker: Broker, channel: Any
):
    eventful(broker, channel)
    events = len(broker.trace.events)
    page = show(broker.trace, failure=FAILURE._replace(event=events))
    wait_for_text(page, "#detail", "The test failed here")
    wait_for_text(page, "#detail .assertion", "assert 0 == 1")
    assert page.locator("#detail .source [aria-current]").inner_text().startswith("8")
    assert page.get_attribute("#list .row.picked", "aria-posinset") == page.get_attribute(
        "body", "data-shown"
    )
    page.focus("#list")
    page.keyboard.press("Home")
    wait_for_text(page, "#detail h2", "connected")
    page.click("#failure")
    wait_for_text(page, "#detail .assertion", "assert 0 == 1")
    # A link to a moment is stronger.
    page = show(broker.trace, "#e0", FAILURE)
    assert page.get_attribute("#list .row.picked", "id") == "e0"


def test_help_of_both_pages_explains_words_and_details_explain_events(
    open_page: Open, show: Show, broker: Broker, channel: Any
):
    eventful(broker, channel)
    inspector, trace = open_page(broker), show(broker.trace, "#name=dead-lettered")
    for page in (inspector, trace):
        page.click("#help")
        wait_for_text(page, "#words", "Dead-letter exchange: the queue passes its dead letters to it.")
        page.keyboard.press("Escape")
    inspector.click("#tab-timeline")
    inspector.click('#line-list .row[aria-label*="dead-lettered"]')
    trace.click('#list .row[aria-label*="dead-lettered"]')
    for page in (inspector, trace):
        wait_for_text(page, "#detail", "A message left a queue as a dead letter")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_axe_reports_no_accessibility_violation_on_trace_page(
    show: Show, broker: Broker, channel: Any, scheme: str, width: int
):
    axe = pytest.importorskip("axe_playwright_python")
    script = (Path(axe.__file__).parent / "axe.min.js").read_text("utf-8")
    message = eventful(broker, channel)
    window = {"width": width, "height": 800}
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
    found = {}
    for address, failure in (("", FAILURE), (f"#message={message}", None), ("#e12", None)):
        page = show(broker.trace, address, failure, color_scheme=scheme, viewport=window, bypass_csp=True)
        page.evaluate(f"{script}; 0")
        result = page.evaluate("(tags) => axe.run(document, {runOnly: tags})", tags)
        for each in result["violations"]:
            found[address, each["id"]] = [item["html"][:160] for item in each["nodes"]]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not found
