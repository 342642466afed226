"""The inspector page as a browser shows it. Skipped where there is no Chromium or no Playwright."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pika
import pytest

from compat_tests.pages.browser import Open, busy, node, text, wait_for_text
from compat_tests.pages.interactions import fill
from fakeamqp import Broker, Proxy

TABS = ("topology", "queues", "messages", "connections", "timeline", "time", "faults", "publish")
OWN = "document.body.dataset.owned=1"
EVIL = f"<img src=x onerror='{OWN}'></script><script>{OWN}</script>"

# --- empty, busy, at a fault, dark ----------------------------------------------------------------------


def test_inspector_of_empty_broker_shows_hint_in_each_tab(page: Any, broker: Broker):
    wait_for_text(page, "#graph-empty", f"Connect a client to {broker.host}:{broker.port}")
    for tab, said in (
        ("queues", "No queues yet."),
        ("connections", "No connections."),
        ("timeline", "Nothing has happened yet."),
        ("time", "No timer is pending"),
        ("faults", "No fault is in force."),
    ):
        page.click(f"#tab-{tab}")
        wait_for_text(page, f"#view-{tab}", said)


def test_inspector_graph_updates_nodes_and_counts_in_place(page: Any, broker: Broker, channel: Any):
    busy(broker, channel)
    page.wait_for_selector(node("queue invoices, 7 ready, 3 unacked, 1 consumer, dead letters to dead"))
    page.wait_for_selector(node("exchange orders, topic, 10 messages published"))
    page.wait_for_selector(node("consumer worker on billing, channel 1, prefetch 3, 3 unacked"))
    assert page.locator("#edges path.edge.dead").count() == 1
    wait_for_text(page, "#graph", "invoices")
    assert "order.*" in page.locator("#edges text").all_text_contents()
    moved = page.evaluate("document.querySelector('.node.queue').dataset.same = 1")
    assert moved == 1
    broker.publish(b"one more", exchange="orders", routing_key="order.new")
    # The edge is lit for a moment only.
    page.wait_for_selector("#edges path.hot", state="attached")
    page.wait_for_selector(node("queue invoices, 8 ready"))
    page.wait_for_selector(node("exchange orders, topic, 11 messages published"))
    # The node was changed, and not made again: focus and screen readers stay where they are.
    assert page.locator(".node[data-same]").count() == 1
    channel.queue_delete("failed")
    page.wait_for_selector(node("queue failed"), state="detached")


def test_inspector_shows_messages_and_arguments_of_selected_queue(topology: None, page: Any, broker: Broker):
    page.click("#tab-queues")
    page.click('#queue-list .row[aria-label^="queue invoices"]')
    wait_for_text(page, "#detail h2", "invoices")
    page.wait_for_selector("#detail .messages .row >> nth=9")
    labels = [row.get_attribute("aria-label") for row in page.locator("#detail .messages .row").all()]
    assert [label.split(" ")[0] for label in labels] == ["ready"] * 7 + ["unacked"] * 3
    page.click("#detail .messages .row >> nth=1")
    wait_for_text(page, "#detail .one", "application/json")
    wait_for_text(page, "#detail .one", "tenant")
    # The body is indented, and its numbers are as the publisher wrote them.
    assert text(page, "#detail .one pre") == '{\n  "id": 4,\n  "total": 84.0\n}'
    broker.publish(b"later", routing_key="invoices")
    page.wait_for_selector("#detail .messages .row >> nth=10")
    wait_for_text(page, "#detail", "x-dead-letter-exchange")
    wait_for_text(page, "#detail", "from orders")


def test_inspector_shows_long_message_body_in_steps(page: Any, broker: Broker, channel: Any):
    channel.queue_declare("q")
    broker.publish(b"a" * 5000 + b"end", routing_key="q")
    page.click(node("queue q"))
    page.click("#detail .messages .row")
    wait_for_text(page, "#detail .one", "the first 2,048 bytes shown")
    page.click("text=Show more of the body")
    page.wait_for_function("() => document.querySelector('#detail .one pre').textContent.endsWith('end')")


def test_inspector_shows_connection_with_channels_and_closes_it(topology: None, page: Any, broker: Broker):
    page.click("#tab-connections")
    page.click('#connection-list .row[aria-label*="billing"]')
    wait_for_text(page, "#detail", "AMQP 0-9-1")
    wait_for_text(page, "#detail table", "Prefetch")
    wait_for_text(page, "#detail", "Pika Python Client Library")
    page.click("text=Close the connection")
    page.click("#confirm-yes")
    wait_for_text(page, "#said", "Closed connection")
    page.wait_for_selector('#connection-list .row[aria-label*="billing"]', state="detached")
    wait_for_text(page, "#detail", "This connection is closed.")
    assert not broker.connections


def test_inspector_shows_sessions_links_and_sections_of_amqp_1_0(page: Any, broker: Broker):
    proton = pytest.importorskip("proton")
    utils = pytest.importorskip("proton.utils")
    broker.load_definitions({"queues": [{"name": "orders", "vhost": "/", "durable": True}]})
    connection = utils.BlockingConnection(f"amqp://guest:guest@127.0.0.1:{broker.port}", timeout=10)
    sender = connection.create_sender("/queues/orders", name="the link")
    sender.send(proton.Message(body=b"x", inferred=True, subject="two apples"))
    page.click("#tab-connections")
    page.click('#connection-list .row[aria-label*="1 channel"]')
    for shown in ("Sessions", "Links", "the link", "sender", "/queues/orders"):
        wait_for_text(page, "#detail", shown)
    page.click("#tab-queues")
    page.click('#queue-list .row[aria-label^="queue orders, 1 ready"]')
    page.click('#detail .row[aria-label^="ready message"]')
    for shown in ("Sections", "subject", "two apples"):
        wait_for_text(page, "#detail", shown)
    connection.close()


def test_inspector_timeline_adds_new_events_and_filters_them(page: Any, broker: Broker, channel: Any):
    page.click("#tab-timeline")
    busy(broker, channel)
    wait_for_text(page, "#line-list", "basic.consume-ok")
    before = int(page.get_attribute("#line-list", "data-count"))
    broker.publish(b"lost", exchange="orders", routing_key="nowhere")
    page.wait_for_selector("#line-list .row.bad")
    assert int(page.get_attribute("#line-list", "data-count")) > before
    page.fill("#line-filter", "QUEUE.declare")
    page.wait_for_function("() => document.getElementById('line-list').dataset.count === '4'")
    page.click('#line-list .row[aria-label*="queue.declare queue"]')
    wait_for_text(page, "#detail", "x-dead-letter-exchange")
    page.fill("#line-filter", "")
    page.uncheck("#kinds label:has-text('Methods') input")
    page.wait_for_function(
        "() => ![...document.querySelectorAll('#line-list .row')].some((row) => row.matches('.k-method'))"
    )


def test_successive_heartbeats_share_one_timeline_row_per_direction(page: Any, broker: Broker, channel: Any):
    page.click("#tab-timeline")
    channel.queue_declare("orders")
    wait_for_text(page, "#line-list", "queue.declare-ok")
    recorder, name = broker._recorder, broker.connections[0].name
    assert recorder is not None
    for count in range(1, 4):
        with broker._engine:
            recorder.frame(name, "received", 8, 0, b"")
            recorder.frame(name, "sent", 8, 0, b"")
        words = "heartbeat" if count == 1 else f"{count} heartbeats until"
        page.wait_for_function(
            "([words]) => [...document.querySelectorAll('#line-list .row.k-heartbeat')]"
            ".filter((row) => row.textContent.includes(words)).length === 2",
            arg=[words],
        )
    assert page.locator("#line-list .row.k-heartbeat").count() == 2
    channel.queue_declare("orders")
    with broker._engine:
        recorder.frame(name, "sent", 8, 0, b"")
    page.wait_for_function("() => document.querySelectorAll('#line-list .row.k-heartbeat').length === 3")


def test_inspector_saves_trace_as_html_file(topology: None, page: Any, tmp_path: Path):
    page.click("#tab-timeline")
    with page.expect_download() as download:
        page.click("#save")
    assert download.value.suggested_filename == "trace.html"
    download.value.save_as(tmp_path / "trace.html")
    assert "basic.publish" in (tmp_path / "trace.html").read_text("utf-8")


def test_inspector_advances_virtual_clock_and_shows_timers(page: Any, broker: Broker, channel: Any):
    channel.queue_declare("q", arguments={"x-message-ttl": 90_000})
    broker.publish(b"", routing_key="q")
    page.click("#tab-time")
    wait_for_text(page, "#timer-list", "q 'q' expires 1 message")
    page.fill("#seconds", "30")
    page.press("#seconds", "Enter")
    wait_for_text(page, "#said", "Advanced 30 seconds.")
    wait_for_text(page, "#elapsed", "30.0 s passed")
    wait_for_text(page, "#timer-list", "in 60.0 s")
    page.click("#next")
    wait_for_text(page, "#said", "Advanced 60 seconds to the next timer.")
    assert broker.queue("q").ready == 0


def test_inspector_shows_real_clock_with_advance_controls_disabled(open_page: Open):
    with Broker(management=True) as broker:
        page = open_page(broker)
        page.click("#tab-time")
        wait_for_text(page, "#view-time", 'create the broker with clock="virtual"')
        assert page.is_disabled("#next") and page.is_disabled("#seconds")
        first = text(page, "#now")
        page.wait_for_function("(first) => document.getElementById('now').innerText !== first", arg=first)


def test_inspector_adds_fault_rule_shows_its_hits_and_removes_it(page: Any, broker: Broker, channel: Any):
    channel.queue_declare("q")
    page.click("#tab-faults")
    page.wait_for_selector("#fault-action option", state="attached")
    page.fill("#fault-method", "basic.publsh")
    page.click("text=Add the rule")
    wait_for_text(page, "#fault-problem[role=alert]", "did you mean 'basic.publish'?")
    page.fill("#fault-method", "basic.publish")
    page.fill("#fault-conditions [name=routing_key]", "q")
    page.select_option("#fault-action", "drop")
    page.select_option("#fault-trigger", "times")
    page.fill("#fault-number", "2")
    page.click("text=Add the rule")
    wait_for_text(page, "#rules", "routing key 'q'")
    assert text(page, "#fault-problem") == ""
    channel.basic_publish("", "other", b"")
    wait_for_text(page, "#rules", "Near misses")
    channel.basic_publish("", "q", b"")
    wait_for_text(page, "#rules .hits", "1 hit")
    assert broker.queue("q").ready == 0
    page.click("#rules >> text=Remove")
    wait_for_text(page, "#rules-empty", "No fault is in force.")
    assert not broker.faults.rules


def test_inspector_releases_message_held_by_fault_rule(page: Any, broker: Broker, channel: Any):
    channel.queue_declare("q")
    rule = broker.faults.on("basic.publish", optional=True).hold()
    page.click("#tab-faults")
    channel.basic_publish("", "q", b"")
    rule.wait()
    page.click("#rules >> text=Release 1")
    broker.queue("q").wait_for(ready=1)


def test_inspector_explains_route_of_message_before_publishing_it(topology: None, page: Any, broker: Broker):
    page.click(node("queue failed"))
    page.click("#detail >> text=Publish to it")
    assert page.input_value("#publish-key") == "failed"
    assert page.evaluate("document.activeElement.id") == "publish-body"
    page.fill("#publish-body", "käse")
    page.fill("#publish-headers", '{"n": 1}')
    page.click("text=Where would it go?")
    wait_for_text(page, "#explanation", "failed")
    assert broker.queue("failed").ready == 0
    page.click("#publish-form >> text=Publish >> nth=0")
    wait_for_text(page, "#published", "routed to failed")
    [found] = broker.queue("failed").messages
    assert (found.text, found.headers, found.delivery_mode) == ("käse", {"n": 1}, 2)
    page.fill("#publish-headers", "{")
    page.click("#publish-form button[type=submit]")
    wait_for_text(page, "#publish-problem[role=alert]", "Headers:")


def test_inspector_purges_queue_only_after_confirmation(page: Any, broker: Broker, channel: Any):
    channel.queue_declare("q")
    broker.publish(b"", routing_key="q")
    page.click(node("queue q"))
    page.click("#detail >> text=Purge")
    wait_for_text(page, "#confirm", "1 ready message will be dropped")
    page.keyboard.press("Escape")
    page.click("#detail >> text=Purge")
    page.click("#confirm >> text=Cancel")
    assert broker.queue("q").ready == 1
    page.click("#detail >> text=Purge")
    page.click("#confirm-yes")
    wait_for_text(page, "#said[aria-live=polite]", "Dropped 1 ready message")
    assert broker.queue("q").ready == 0


@pytest.mark.parametrize("width", [480, 1000, 1400])
def test_selected_queue_and_its_details_are_both_visible(
    open_page: Open, broker: Broker, channel: Any, width: int
):
    busy(broker, channel)
    for number in range(20):  # More than there is room for.
        channel.queue_declare(f"other-{number}")
    page = open_page(broker, viewport={"width": width, "height": 800})
    page.click(node("consumer worker"))
    page.click("#detail >> text=Its queue")
    page.wait_for_selector("#detail .messages .row")
    seen = page.locator(node("queue invoices")).bounding_box()
    graph, detail = page.locator("#graph").bounding_box(), page.locator("#detail").bounding_box()
    assert graph["x"] <= seen["x"] and seen["x"] + seen["width"] <= graph["x"] + graph["width"] + 1
    assert graph["y"] <= seen["y"] and seen["y"] + seen["height"] <= graph["y"] + graph["height"] + 1
    assert detail["height"] > 250 and detail["y"] + detail["height"] <= 801
    assert detail["x"] + detail["width"] <= width + 1


def test_inspector_shows_only_queues_of_selected_virtual_host(open_page: Open, broker: Broker, channel: Any):
    channel.queue_declare("here")
    broker.admin.add_virtual_host("other")
    parameters = pika.ConnectionParameters(broker.host, broker.port, "other")
    with pika.BlockingConnection(parameters) as connection:
        connection.channel().queue_declare("there")
        page = open_page(broker)
        page.wait_for_selector(node("queue here"))
        page.select_option("#hosts", "other")
        page.wait_for_selector(node("queue there"))
        assert page.locator(node("queue here")).count() == 0


# --- keys, colours, screen readers ----------------------------------------------------------------------


def test_keyboard_moves_through_tabs_lists_and_graph_of_inspector(topology: None, page: Any):
    page.wait_for_selector(node("queue failed"))
    focused = "document.activeElement.id || document.activeElement.getAttribute('aria-label')"
    page.keyboard.press("2")
    assert page.evaluate(focused) == "tab-queues"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(focused) == "tab-queues"
    page.keyboard.press("/")
    assert page.evaluate(focused) == "queue-filter"
    page.keyboard.type("invoices")
    page.focus("#queue-list")
    page.keyboard.press("Home")
    assert page.get_attribute("#queue-list", "aria-activedescendant") == "queue-list-0"
    page.keyboard.press("Enter")
    assert page.evaluate(focused) == "detail"
    page.keyboard.press("Escape")
    assert page.evaluate(focused) == "queue-list"
    assert page.is_hidden("#detail")
    # The graph is one stop of the tab key, and arrows go on from there.
    page.keyboard.press("1")
    page.focus('.node[tabindex="0"]')
    assert page.locator('.node[tabindex="0"]').count() == 1
    seen = set()
    for key in ("ArrowLeft", "ArrowDown", "ArrowRight", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
        seen.add(page.evaluate("document.activeElement.className.split(' ')[1]"))
    assert seen == {"exchange", "queue", "consumer"}
    page.keyboard.press("Enter")
    wait_for_text(page, "#detail h2", "worker")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.className").startswith("node consumer")
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    page.uncheck("#single-keys")
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    assert page.get_attribute("#tab-topology", "aria-selected") == "true"


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1400), ("dark", 1400), ("light", 390), ("dark", 390)]
)
def test_axe_reports_no_accessibility_violation_in_any_inspector_tab(
    open_page: Open, broker: Broker, channel: Any, scheme: str, width: int
):
    axe = pytest.importorskip("axe_playwright_python")
    script = (Path(axe.__file__).parent / "axe.min.js").read_text("utf-8")
    busy(broker, channel)
    broker.faults.on("basic.get", optional=True).drop()
    broker.faults.memory_alarm()
    broker.publish(b"lost", routing_key="nowhere")
    window = {"width": width, "height": 844}
    page = open_page(broker, color_scheme=scheme, reduced_motion="reduce", viewport=window)
    page.evaluate(f"{script}; 0")
    found = {}
    for tab in TABS:
        page.click(f"#tab-{tab}")
        if tab in ("queues", "messages", "connections", "timeline"):
            page.click(f"#view-{tab} .list .row >> nth=0")
            page.wait_for_selector("#detail table")
            page.wait_for_timeout(0)
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
        result = page.evaluate("(tags) => axe.run(document, {runOnly: tags})", tags)
        for each in result["violations"]:
            found[tab, each["id"]] = [item["html"][:160] for item in each["nodes"]]
    assert not found
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")


def test_chosen_colour_scheme_of_inspector_survives_reload(open_page: Open, broker: Broker):
    page = open_page(broker, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.click("#theme")
    assert page.evaluate(ground) == "rgb(255, 255, 255)" != dark
    page.reload()
    page.wait_for_selector("#live.on")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"


def test_inspector_runs_no_animation_with_reduced_motion(open_page: Open, broker: Broker, channel: Any):
    busy(broker, channel)
    page = open_page(broker, reduced_motion="reduce")
    page.wait_for_selector(node("queue invoices, 7 ready"))
    broker.publish(b"", exchange="orders", routing_key="order.new")
    page.wait_for_selector("#edges path.hot", state="attached")
    assert page.evaluate("document.getAnimations().length") == 0


def test_paused_inspector_renders_no_update_until_resumed(page: Any, broker: Broker, channel: Any):
    channel.queue_declare("q")
    page.wait_for_selector(node("queue q, 0 ready"))
    page.keyboard.press("p")
    wait_for_text(page, "#live", "Paused")
    broker.publish(b"", routing_key="q")
    # What the page gets is kept for later.
    rendered = page.evaluate("document.body.dataset.rendered")
    with page.expect_response("**/ask/queue"):
        page.evaluate("fetch('ask/queue', {method: 'POST'})")
    assert page.evaluate("document.body.dataset.rendered") == rendered
    page.keyboard.press("p")
    page.wait_for_selector(node("queue q, 1 ready"))


# --- a proxy --------------------------------------------------------------------------------------------


def test_inspector_of_proxy_shows_connections_timeline_and_faults_and_hides_other_tabs(
    open_page: Open, broker: Broker
):
    with (
        Proxy(broker.url, control=True) as proxy,
        pika.BlockingConnection(pika.URLParameters(proxy.url)) as connection,
    ):
        channel = connection.channel()
        channel.queue_declare("orders")
        page = open_page(proxy)
        wait_for_text(page, "#stats", f"{broker.host}:{broker.port}")
        shown = [tab.get_attribute("id") for tab in page.locator("#tabs .tab:visible").all()]
        assert shown == ["tab-connections", "tab-timeline", "tab-faults"]
        assert page.get_attribute("#tab-connections", "aria-selected") == "true"
        page.wait_for_selector('#connection-list .row[aria-label*="guest"]')
        page.keyboard.press("1")
        assert page.get_attribute("#tab-connections", "aria-selected") == "true"
        page.focus("#tab-connections")
        page.keyboard.press("ArrowLeft")
        assert page.get_attribute("#tab-faults", "aria-selected") == "true"
        page.wait_for_selector("#fault-action option", state="attached")
        page.fill("#fault-conditions [name=routing_key]", "orders")
        page.select_option("#fault-action", "delay")
        page.fill("#fault-arguments [name=seconds]", "0.5")
        page.click("text=Add the rule")
        wait_for_text(page, "#rules", "delay it by 0.5 s")
        channel.basic_publish("", "orders", b"")
        wait_for_text(page, "#rules .hits", "1 hit")
        page.click("#tab-timeline")
        wait_for_text(page, "#line-list", "basic.publish")
        page.click("#tab-connections")
        page.click("#connection-list .row")
        page.click("#detail >> text=Close the connection")
        page.click("#confirm-yes")
        wait_for_text(page, "#said", "Closed connection")
        page.wait_for_selector("#connection-list .row", state="detached")
        with suppress(pika.exceptions.AMQPError):
            connection.process_data_events(1)


# --- who may look ---------------------------------------------------------------------------------------


def test_inspector_removes_token_from_address_and_survives_reload(page: Any):
    assert "token" not in page.url and page.url.endswith("/inspector/#topology")
    page.reload()
    page.wait_for_selector("#live.on")
    assert page.evaluate("document.cookie") == ""


def test_inspector_without_token_asks_for_name_and_password(open_page: Open, broker: Broker, channel: Any):
    channel.queue_declare("q")
    page = open_page(broker, broker.admin.inspector_url.partition("#")[0])
    page.wait_for_selector("#login[open]")
    page.fill("#login-name", "guest")
    page.fill("#login-password", "wrong")
    page.keyboard.press("Enter")
    wait_for_text(page, "#login-text", "password is wrong")
    page.fill("#login-password", "guest")
    page.keyboard.press("Enter")
    page.wait_for_selector(node("queue q"))


def test_inspector_reconnects_when_broker_starts_again(page: Any, broker: Broker, channel: Any):
    channel.queue_declare("kept", durable=True)
    channel.queue_declare("lost")
    page.wait_for_selector(node("queue lost"))
    broker.stop()
    page.wait_for_selector("#live.lost")
    broker.start()
    page.wait_for_selector("#live.on")
    page.wait_for_selector(node("queue lost"), state="detached")
    assert page.locator(node("queue kept")).count() == 1


def test_page_of_other_origin_cannot_purge_queue_or_read_answer(browser: Any, broker: Broker, channel: Any):
    """The page of another origin has the token here, which it would not have in reality."""
    channel.queue_declare("q")
    broker.publish(b"", routing_key="q")
    address, _, token = broker.admin.control_url.partition("#token=")
    with browser.new_context() as context:
        page = context.new_page()
        page.route("http://evil.example/", lambda route: route.fulfill(body="<html></html>"))
        page.goto("http://evil.example/")
        tried = page.evaluate(
            """async ([address, token]) => {
              const said = [];
              for (const mode of ["cors", "no-cors"])
                for (const type of ["application/json", "text/plain"]) {
                  const headers = { "content-type": type };
                  if (mode === "cors") headers.authorization = `Bearer ${token}`;
                  try {
                    const sent = { method: "POST", mode, headers, body: "{}" };
                    const answer = await fetch(`${address}/queues/%2F/q/purge`, sent);
                    said.push(answer.type === "opaque" ? "opaque" : await answer.text());
                  } catch (error) { said.push("failed"); }
                }
              return said;
            }""",
            [address, token],
        )
    assert set(tried) <= {"failed", "opaque"}
    assert broker.queue("q").ready == 1


def test_hostile_names_of_client_are_never_executed_by_inspector(open_page: Open):
    with Broker(management=True, clock="virtual") as broker:
        parameters = pika.ConnectionParameters(
            broker.host, broker.port, client_properties={"connection_name": EVIL, "product": EVIL, EVIL: EVIL}
        )
        with pika.BlockingConnection(parameters) as connection:
            channel = connection.channel()
            channel.exchange_declare(EVIL, "topic", arguments={"alternate-exchange": EVIL})
            arguments = {EVIL: EVIL, "x-dead-letter-exchange": EVIL, "x-expires": 60_000}
            channel.queue_declare(EVIL, arguments=arguments)
            channel.queue_bind(EVIL, EVIL, EVIL)
            properties = pika.BasicProperties(headers={EVIL: EVIL}, message_id=EVIL, type=EVIL)
            channel.basic_publish(EVIL, EVIL, EVIL.encode(), properties)
            channel.basic_publish(EVIL, EVIL, EVIL.encode(), properties)
            channel.basic_qos(prefetch_count=1)
            channel.basic_consume(EVIL, lambda *_: None, consumer_tag=EVIL)
            broker.faults.on("basic.publish", routing_key=EVIL, exchange=EVIL, optional=True).drop()
            broker.faults.memory_alarm(EVIL)
            channel.basic_publish(EVIL, EVIL + "x", b"a near miss")
            broker.wait_until_idle()
            page = open_page(broker)
            page.wait_for_selector(".node.consumer")
            for kind in ("exchange", "queue", "consumer"):
                page.click(f".node.{kind} >> nth=0")
                wait_for_text(page, "#detail", "<script>")
            for tab in TABS:
                page.click(f"#tab-{tab}")
                for row in range(min(12, page.locator(f"#view-{tab} .list .row").count())):
                    page.locator(f"#view-{tab} .list .row").nth(row).click()
            page.click("#tab-queues")
            page.click("#queue-list .row >> nth=0")
            page.click("#detail .messages .row >> nth=1")
            wait_for_text(page, "#detail .one", "onerror")
            assert page.locator("img").count() == 0
            assert page.evaluate("document.querySelectorAll('script').length") == 1
            assert page.get_attribute("body", "data-owned") is None
            broker.faults.clear()


def test_content_security_policy_blocks_inner_html_and_inline_script(page: Any):
    stopped = page.evaluate(
        """() => {
          const said = [];
          const tried = (action) => {
            try { action(); said.push("done"); } catch (error) { said.push(error.name); }
          };
          tried(() => { document.getElementById("said").innerHTML = "<b>x</b>"; });
          const script = document.createElement("script");
          tried(() => { script.textContent = "document.body.dataset.owned = 1"; });
          document.body.append(script);
          return said;
        }"""
    )
    assert stopped[0] == "TypeError"
    assert page.get_attribute("body", "data-owned") is None
    assert page.problems
    page.problems.clear()


# --- large ----------------------------------------------------------------------------------------------


def test_inspector_of_large_broker_renders_only_rows_near_viewport(open_page: Open):
    with Broker(management=True) as broker:
        fill(broker)
        page = open_page(broker)
        wait_for_text(page, "#graph-shown", "60 of 1,000 queues")
        assert page.locator(".node").count() < 100
        page.fill("#graph-filter", "queue-99")
        wait_for_text(page, "#graph-shown", "11 queues")
        page.click("#tab-queues")
        page.wait_for_selector("#queue-list .row")
        assert page.locator("#queue-list .row").count() < 60
        page.focus("#queue-list")
        page.keyboard.press("End")
        page.wait_for_selector('#queue-list .row.picked[aria-label^="queue queue-999,"]')
        assert page.get_attribute("#queue-list .row.picked", "aria-posinset") == "1000"
        page.click("#queue-heads >> text=Ready")
        page.focus("#queue-list")
        page.keyboard.press("Home")
        page.keyboard.press("Enter")
        wait_for_text(page, "#detail h2", "queue-0")
        page.focus("#detail .messages .list")
        page.evaluate("(list => { list.scrollTop = list.scrollHeight })(document.activeElement)")
        page.wait_for_selector('#detail .messages .row[aria-posinset="10000"][aria-label*="9999"]')
        assert page.locator("#detail .messages .row").count() < 60
        page.click("#tab-timeline")
        page.wait_for_selector("#line-list .row")
        assert page.locator("#line-list .row").count() < 100


# --- a test that is held open ---------------------------------------------------------------------------

FAILING = """
def test_fails(amqp_broker, pika_channel):
    pika_channel.queue_declare("orders")
    print("captured")
    assert amqp_broker.queue("orders").ready == 1

def test_passes(amqp_broker):
    pass
"""


@pytest.mark.parametrize("how", ["the button", "Ctrl-C"])
def test_amqp_inspect_holds_failed_test_open_until_ended(open_page: Open, tmp_path: Path, how: str):
    (tmp_path / "test_inner.py").write_text(FAILING)
    # A process that was started in the background of a shell may have been told to ignore Ctrl-C.
    program = "import pytest, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command = [sys.executable, "-u", "-c", program + "sys.exit(pytest.main(sys.argv[1:]))"]
    command += ["--amqp-inspect", "-p", "no:cacheprovider", "--timeout=30"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        said = []
        try:
            for line in process.stdout:
                said.append(line)
                if found := re.search(r"http://\S+/inspector/#token=\S+", line):
                    break
            else:
                pytest.fail("".join(said))
            if how == "the button":
                page = open_page(None, found[0])
                wait_for_text(page, "#held", "A failed test is held open: test_inner.py::test_fails")
                wait_for_text(page, ".node.queue", "orders")
                page.click("#end-hold")
            else:
                process.send_signal(signal.SIGINT)
            rest = process.stdout.read()
        finally:
            process.kill()
    assert "1 failed, 1 passed" in rest
    assert "captured" not in "".join(said)


def test_serve_prints_inspector_address_and_timeline_shows_unroutable_publish(open_page: Open):
    command = [sys.executable, "-m", "fakeamqp", "serve", "--port", "0", "--management-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = None
            while found is None:
                found = re.match(r"inspector on (http://\S+/inspector/#token=\S+)", process.stdout.readline())
            page = open_page(None, found[1])
            page.wait_for_selector("#live.on")
            page.click("#tab-publish")
            page.fill("#publish-key", "nowhere")
            page.click("#publish-form button[type=submit]")
            wait_for_text(page, "#published", "unroutable")
            page.click("#tab-timeline")
            page.wait_for_selector("#line-list .row.bad")
        finally:
            process.terminate()
