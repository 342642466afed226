"""The inspector page: pausing, searching, links and Back, messages, rates, the picture, small windows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pika
import pytest

from compat_tests.pages.browser import Open, busy, node, text, wait_for_text
from fakeamqp import Broker

# --- pausing ----------------------------------------------------------------------------------------------


def test_paused_inspector_is_snapshot_whose_tabs_and_filters_load_nothing_new(
    topology: None, page: Any, broker: Broker
):
    page.click("#tab-messages")
    page.wait_for_selector("#outcome-list .row >> nth=9")
    page.keyboard.press("p")
    wait_for_text(page, "#live", "Paused")
    broker.publish(b"later", routing_key="invoices", headers={"tenant": "later"})
    broker.queue("invoices").wait_for(ready=8)
    streams: list[str] = []
    page.on("request", lambda request: streams.append(request.url) if "/events" in request.url else None)
    page.fill("#outcome-filter", "later")
    wait_for_text(page, "#outcomes-empty", "No message matches the filter.")
    page.fill("#outcome-filter", "")
    page.wait_for_selector("#outcome-list .row >> nth=9")
    assert page.get_attribute("#outcome-list", "data-count") == "10"
    page.click("#tab-timeline")
    page.fill("#line-filter", "later")
    with page.expect_response("**/ask/search"):
        page.fill("#line-filter", "LATER")
        page.fill("#line-filter", "later!")
        page.fill("#line-filter", "later")
    wait_for_text(page, "#lines-empty", "No event matches the filter.")
    page.click("#tab-queues")
    page.wait_for_selector('#queue-list .row[aria-label^="queue invoices, 7 ready"]')
    page.click("#queue-list .row")
    wait_for_text(page, "#detail", "The page is paused, and this was not loaded before.")
    assert not streams
    page.keyboard.press("Escape")
    page.keyboard.press("p")
    page.wait_for_selector('#queue-list .row[aria-label^="queue invoices, 8 ready"]')
    page.click("#tab-timeline")
    page.wait_for_selector('#line-list .row[aria-label*="later"]')


def test_resumed_timeline_goes_on_where_it_was_paused(topology: None, page: Any, broker: Broker):
    page.click("#tab-timeline")
    page.wait_for_selector("#line-list .row")
    before = int(page.get_attribute("#line-list", "data-count"))
    page.keyboard.press("p")
    broker.publish(b"lost", routing_key="nowhere")
    page.keyboard.press("p")
    page.wait_for_selector("#line-list .row.bad")
    assert int(page.get_attribute("#line-list", "data-count")) == before + 2


# --- searching --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        ("Needle", "basic.publish"),
        ("tenant-42", "basic.publish"),
        ("käse", "basic.publish"),
        ("billing", "connected"),
    ],
)
def test_timeline_search_finds_text_in_body_headers_and_connection(
    page: Any, broker: Broker, channel: Any, wanted: str, shown: str
):
    channel.queue_declare("q")
    # The row shows only the beginning of the line.
    properties = pika.BasicProperties(
        headers={f"h{number}": "x" * 20 for number in range(40)} | {"z": "TENANT-42"}
    )
    channel.basic_publish("", "q", b"y" * 1000 + "needle KÄSE".encode(), properties)
    broker.queue("q").wait_for(ready=1)
    page.click("#tab-timeline")
    page.wait_for_selector("#line-list .row")
    page.fill("#line-filter", wanted)
    page.wait_for_selector(f'#line-list .row[aria-label*="{shown}"]')
    assert not page.locator('#line-list .row[aria-label*="queue.declare "]').count() or wanted == "billing"
    page.fill("#line-filter", "no such text")
    wait_for_text(page, "#lines-empty", "No event matches the filter.")


# --- messages ---------------------------------------------------------------------------------------------


def test_messages_tab_shows_each_outcome_and_filters_by_any_field(page: Any, broker: Broker, channel: Any):
    channel.queue_declare("q", arguments={"x-dead-letter-exchange": "amq.fanout"})
    channel.queue_declare("dead")
    channel.queue_bind("dead", "amq.fanout", "")
    channel.basic_publish("", "q", b"dead", pika.BasicProperties(headers={"tenant": "acme"}))
    channel.basic_publish("", "nowhere", b"returned", mandatory=True)
    channel.basic_publish("", "nowhere", b"dropped")
    method, _, _ = channel.basic_get("q")
    channel.basic_reject(method.delivery_tag, requeue=False)
    broker.wait_until_idle()
    page.click("#tab-messages")
    for kind, told in (
        ("published", "unroutable"),
        ("returned", "312 NO_ROUTE"),
        ("dead-lettered", "rejected in queue q"),
        ("dropped", "unroutable"),
    ):
        page.check(f"#outcomes input[value='{kind}']")
        page.wait_for_selector(f'#outcome-list .row[aria-label*="{told}"]')
    page.check("#outcomes input[value='published']")
    wait_for_text(page, "#outcomes-shown", "3 messages")
    page.fill("#outcome-filter", "ACME")
    wait_for_text(page, "#outcomes-shown", "1 of 3 messages")
    page.click("#outcome-list .row")
    wait_for_text(page, "#detail", "tenant")
    assert page.locator("#detail .story b").all_inner_texts()[:2] == ["published", "enqueued"]
    page.keyboard.press("Escape")
    page.fill("#outcome-filter", "")
    broker.publish(b"one more", routing_key="q")
    wait_for_text(page, "#outcomes-shown", "4 messages")


# --- links and Back ---------------------------------------------------------------------------------------


def opened_at(page: Any, address: str) -> None:
    """Follow a link in a window that is logged in, from another page."""
    own = page.url.partition("#")[0]
    page.goto("about:blank")
    page.goto(own + address)
    page.wait_for_selector("#live.on")


def test_link_opens_queue_exchange_connection_and_moment(topology: None, page: Any, broker: Broker):
    name = broker.connections[0].name
    for address, tab, heading in (
        ("#queue=invoices", "queues", "invoices"),
        ("#topology&queue=failed", "topology", "failed"),
        ("#exchange=orders", "topology", "orders"),
        (f"#connection={name}", "connections", "billing"),
        ("#event=0.0", "timeline", "connected"),
        ("#message=3", "messages", "3"),
    ):
        opened_at(page, address)
        wait_for_text(page, "#detail h2", heading)
        assert page.get_attribute(f"#tab-{tab}", "aria-selected") == "true", address
    opened_at(page, "#timeline&filter=queue.bind")
    page.wait_for_selector('#line-list .row[aria-label*="queue.bind"]')
    assert page.input_value("#line-filter") == "queue.bind"
    opened_at(page, "#queue=no-such-queue")
    wait_for_text(page, "#detail", "This queue is gone.")


def test_back_returns_through_views_and_details(topology: None, page: Any):
    page.click("#tab-queues")
    page.click('#queue-list .row[aria-label^="queue invoices"]')
    page.click('#queue-list .row[aria-label^="queue failed"]')
    page.click("#tab-timeline")
    page.go_back()
    wait_for_text(page, "#detail h2", "failed")
    assert page.url.endswith("#queues&queue=failed")
    page.go_back()
    wait_for_text(page, "#detail h2", "invoices")
    page.go_back()
    page.wait_for_selector("#detail", state="hidden")
    assert page.get_attribute("#tab-queues", "aria-selected") == "true"
    page.go_back()
    page.wait_for_selector("#tab-topology[aria-selected=true]")
    page.go_forward()
    page.wait_for_selector("#tab-queues[aria-selected=true]")


# --- queues and exchanges ---------------------------------------------------------------------------------


def test_queues_show_ttl_dead_letters_priority_limits_and_rates(page: Any, broker: Broker, channel: Any):
    arguments = {
        "x-message-ttl": 60_000,
        "x-dead-letter-exchange": "dead",
        "x-dead-letter-routing-key": "late",
        "x-max-priority": 5,
        "x-max-length": 1000,
        "x-expires": 3_600_000,
        "x-single-active-consumer": True,
    }
    channel.queue_declare("q", arguments=arguments)
    for _ in range(10):
        broker.publish(b"", routing_key="q")
    channel.basic_get("q", auto_ack=True)
    method, _, _ = channel.basic_get("q")
    channel.basic_ack(method.delivery_tag)
    broker.queue("q").wait_for(ready=8, unacked=0)
    page.click("#tab-queues")
    page.wait_for_selector("#queue-list .row")
    flags = page.locator("#queue-list .flag").all_inner_texts()
    assert flags == [
        *("transient", "TTL 60 s", "Exp 60.0 min", "DLX dead", "DLK late", "Pri 5", "Lim 1,000", "SAC")
    ]
    cells = page.locator("#queue-list .row > span.n")
    page.wait_for_function(
        "() => [...document.querySelectorAll('#queue-list .row > span.n')].slice(-3)"
        ".map((each) => each.textContent).join() === '2.0,0.4,0.2'"
    )
    assert cells.count() == 7
    broker.clock.advance(10)
    page.wait_for_function(
        "() => [...document.querySelectorAll('#queue-list .row > span.n')].slice(-3)"
        ".map((each) => each.textContent).join() === '0,0,0'"
    )


def test_exchange_counts_dead_letters_and_messages_from_other_exchanges(
    page: Any, broker: Broker, channel: Any
):
    channel.exchange_declare("events", "topic")
    channel.exchange_declare("audit", "fanout")
    channel.exchange_declare("dead", "fanout")
    channel.exchange_bind("audit", "events", "#")
    channel.queue_declare("log", arguments={"x-dead-letter-exchange": "dead"})
    channel.queue_bind("log", "audit", "")
    channel.queue_declare("failed")
    channel.queue_bind("failed", "dead", "")
    for _ in range(3):
        channel.basic_publish("events", "a", b"")
    method, _, _ = channel.basic_get("log")
    channel.basic_reject(method.delivery_tag, requeue=False)
    page.wait_for_selector(node("exchange events, topic, 3 messages published"))
    page.wait_for_selector(node("exchange audit, fanout, 3 from exchanges, 0 messages published"))
    page.wait_for_selector(node("exchange dead, fanout, 1 dead letter, 0 messages published"))
    # The edges between them have lit up.
    page.click(node("exchange audit"))
    wait_for_text(page, "#detail .figures", "From exchanges\n3")


# --- the picture ------------------------------------------------------------------------------------------

CROSSED = r"""() => {
  const boxes = [...document.querySelectorAll('.node')].map((each) => {
    const [, x, y] = /translate\(([-\d.]+)px, ([-\d.]+)px/.exec(each.style.transform);
    const [w, h] = [each.style.width, each.style.height].map(parseFloat);
    return { name: each.getAttribute('aria-label'), x: +x, y: +y, w, h };
  });
  const found = [];
  for (const path of document.querySelectorAll('#edges path.edge')) {
    const length = path.getTotalLength();
    for (let at = 3; at < length - 3; at += 3) {
      const { x, y } = path.getPointAtLength(at);
      for (const box of boxes)
        if (x > box.x + 1 && x < box.x + box.w - 1 && y > box.y + 1 && y < box.y + box.h - 1)
          found.push(box.name);
    }
  }
  return [...new Set(found)];
}"""


def tangled(channel: Any) -> None:
    """Edges over several columns, back and in one column."""
    for name in ("a", "b", "c", "d"):
        arguments = {"alternate-exchange": "a"} if name == "d" else None
        channel.exchange_declare(name, "topic", arguments=arguments)
    for source, target in (("a", "b"), ("b", "c"), ("a", "d"), ("a", "c")):
        channel.exchange_bind(target, source, "#")
    for number in range(6):
        arguments = {"x-dead-letter-exchange": "abc"[number % 3]}
        channel.queue_declare(f"q{number}", arguments=arguments)
        for name in ("a", "d", "c")[: number % 3 + 1]:
            channel.queue_bind(f"q{number}", name, f"key.{number}")
    channel.queue_declare("own", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "own"})
    channel.queue_declare(
        "other", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q0"}
    )


def test_edges_have_arrowheads_and_go_around_nodes(open_page: Open, broker: Broker, channel: Any):
    tangled(channel)
    page = open_page(broker, viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")
    page.wait_for_selector(node("queue q5"))
    edges = page.locator("#edges path.edge")
    heads = [edge.get_attribute("marker-end") for edge in edges.all()]
    assert len(heads) > 20 and all(heads)
    for head in set(heads):
        assert page.locator(str(head)[4:-1]).count() == 1
    assert page.evaluate(CROSSED) == []


def test_picture_zooms_with_keys_and_wheel_and_fits_window(open_page: Open, broker: Broker, channel: Any):
    tangled(channel)
    page = open_page(broker, viewport={"width": 900, "height": 500})
    page.wait_for_selector(node("queue q5"))
    page.click("#zoom")
    width = page.locator(node("queue q0")).bounding_box()["width"]
    page.click("#zoom-in")
    wait_for_text(page, "#zoom", "125 %")
    assert page.locator(node("queue q0")).bounding_box()["width"] == pytest.approx(width * 1.25)
    page.click("#fit")
    graph = page.evaluate(
        "(() => { const g = document.getElementById('graph');"
        "return [g.scrollWidth - g.clientWidth, g.scrollHeight - g.clientHeight]; })()"
    )
    assert max(graph) <= 1
    page.hover("#graph")
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    page.wait_for_function("() => parseInt(document.getElementById('zoom').textContent) > 60")


@pytest.mark.parametrize("width", [1000, 1400])
def test_details_leave_picture_where_it_is(open_page: Open, broker: Broker, channel: Any, width: int):
    busy(broker, channel)
    page = open_page(broker, viewport={"width": width, "height": 800})
    page.wait_for_selector(node("exchange orders"))
    before = page.locator(node("exchange orders")).bounding_box()
    page.click(node("exchange orders"))
    wait_for_text(page, "#detail h2", "orders")
    assert page.locator(node("exchange orders")).bounding_box() == before
    page.click("#zoom-in")
    page.click("#zoom")
    # A node under the pane comes out from below it.
    page.keyboard.press("Escape")
    page.click(node("consumer worker"))
    wait_for_text(page, "#detail h2", "worker")
    seen = page.locator(node("consumer worker")).bounding_box()
    assert seen["x"] + seen["width"] <= page.locator("#detail").bounding_box()["x"]


# --- small windows ----------------------------------------------------------------------------------------


def test_every_tab_fits_window_of_390_pixels(open_page: Open, broker: Broker, channel: Any):
    busy(broker, channel)
    page = open_page(broker, viewport={"width": 390, "height": 844}, has_touch=True)
    page.wait_for_selector(node("queue invoices"))
    for tab in ("topology", "queues", "messages", "connections", "timeline", "time", "faults", "publish"):
        page.click(f"#tab-{tab}")
        rows = page.locator(f"#view-{tab} .list .row")
        if tab in ("queues", "messages", "connections", "timeline"):
            rows.nth(0).click()
            page.wait_for_selector("#detail h2")
            box = page.locator("#detail").bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= 390 and box["height"] > 300
            page.click("#detail >> text=Close")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, tab
        for box in page.locator(f"#view-{tab} .bar input:visible, #view-{tab} .bar > button:visible").all():
            seen = box.bounding_box()
            # Kinds are in a line that scrolls.
            if not box.evaluate("(each) => Boolean(each.closest('.kinds'))"):
                assert seen["x"] >= 0 and seen["x"] + seen["width"] <= 391, (tab, box)


# --- a failed test ----------------------------------------------------------------------------------------

FAILING = """
def test_fails(amqp_broker, pika_channel):
    pika_channel.queue_declare("orders")
    amqp_broker.publish(b"lost", routing_key="nowhere")
    assert amqp_broker.queue("orders").ready == 1
"""


def test_inspector_of_held_test_opens_at_failure_with_assertion_and_source(open_page: Open, tmp_path: Path):
    (tmp_path / "test_inner.py").write_text(FAILING)
    command = [sys.executable, "-u", "-m", "pytest", "--amqp-inspect", "--amqp-trace=traces"]
    command += ["-p", "no:cacheprovider", "--timeout=60"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if found := re.search(r"http://\S+/inspector/#token=\S+", line):
                    break
            else:
                pytest.fail("no address was printed")
            page = open_page(None, found[0])
            wait_for_text(page, "#detail", "The test failed here")
            assert page.get_attribute("#tab-timeline", "aria-selected") == "true"
            assert "assert 0 == 1" in text(page, "#detail .assertion")
            assert "== 1" in page.locator("#detail .source [aria-current]").inner_text()
            assert page.locator("#line-list .row.picked").count() == 1
            page.click("#tab-queues")
            page.wait_for_selector("#queue-list .row")
            page.click("#to-failure")
            wait_for_text(page, "#detail", "The test failed here")
            page.click("#end-hold")
            process.stdout.read()
        finally:
            process.kill()
    [recorded] = (tmp_path / "traces").glob("*.html")
    page = open_page(None, recorded.as_uri())
    wait_for_text(page, "#detail", "The test failed here")
    assert "assert 0 == 1" in text(page, "#detail .assertion")
    assert page.locator("#detail .source [aria-current]").inner_text().startswith("5")
    # Later events, such as the end of the connection, follow the failure.
    picked = int(page.get_attribute("#list .row.picked", "aria-posinset"))
    assert picked < int(page.get_attribute("body", "data-shown"))
