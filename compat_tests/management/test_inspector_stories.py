"""What the inspector tells of messages without a browser: stories, outcomes, search, flows and rates."""

from __future__ import annotations

from typing import Any

import pika
import pytest

from compat_tests.management.control_client import Refusal
from compat_tests.management.inspector_client import Page, inspector_of
from fakeamqp import Broker
from fakeamqp.management.inspector.timeline import Timeline


@pytest.fixture
def page(broker: Broker) -> Page:
    return Page.of(broker)


@pytest.fixture
def rejected(broker: Broker, channel: Any) -> int:
    """A message that was rejected and dead-lettered; returns its number."""
    channel.exchange_declare("dead", "fanout")
    channel.queue_declare("orders", arguments={"x-dead-letter-exchange": "dead"})
    channel.queue_declare("failed")
    channel.queue_bind("failed", "dead", "")
    channel.basic_publish("", "orders", b"one", pika.BasicProperties(headers={"tenant": "Acme"}))
    method, _, _ = channel.basic_get("orders")
    channel.basic_reject(method.delivery_tag, requeue=False)
    broker.queue("failed").wait_for(ready=1)
    [published] = broker._state.published or ()
    return int(published.message.number)


def names(story: dict[str, Any]) -> list[str]:
    return [story["pool"][row[6]] for row in story["rows"]]


def test_story_has_events_of_one_message_until_given_event(page: Page, broker: Broker, rejected: int):
    broker.publish(b"another", routing_key="orders")
    story = page.ask("story", message=rejected)
    told = ["published", "enqueued", "delivered", "rejected", "dead-lettered", "enqueued"]
    assert names(story) == told
    assert {row[15] for row in story["rows"]} == {rejected}
    serial, place = story["rows"][2][0]
    assert page.ask("event", serial=serial, place=place)["name"] == "delivered"
    assert names(page.ask("story", message=rejected, until=serial)) == told[:2]
    assert page.ask("story", message=9999)["rows"] == []


def test_details_of_publish_delivery_and_reject_name_their_message(page: Page, rejected: int):
    with page.events() as events:
        lines = events.next()[1]["timeline"]["lines"]
    for name in ("basic.publish", "basic.get-ok", "basic.reject", "dead-lettered"):
        [line] = [line for line in lines if line[7] == name]
        assert page.ask("event", serial=line[0], place=line[1])["message"] == rejected, name


def test_search_finds_lines_by_any_field_and_also_after_later_events(
    page: Page, broker: Broker, channel: Any, rejected: int
):
    def found(text: str, **asked: Any) -> list[list[int]]:
        return [list(each) for each in page.ask("search", text=text, serial=0, **asked)]

    first = found("acme")
    assert first and first == found("ACME")
    assert found("no such text") == []
    channel.basic_publish("", "orders", b"two", pika.BasicProperties(message_id="ACME"))
    broker.queue("orders").wait_for(ready=1)
    second = found("acme")
    assert second[: len(first)] == first and len(second) > len(first)
    assert found("acme", until=first[-1][0] + 1) == first
    latest = second[-1][0]
    broker.publish(b"last", routing_key="orders")
    # A search that begins later leaves nothing out of one that begins earlier.
    fresh = Timeline(broker._engine, broker._recorder)
    assert fresh.search("last", latest)[0] not in [tuple(each) for each in second]
    assert [list(each) for each in fresh.search("acme", 0)] == second
    assert page.ask("search", text="acme", serial=latest) == [each for each in second if each[0] == latest]


def test_search_and_rates_begin_again_after_a_reset(page: Page, broker: Broker):
    broker.load_definitions({"queues": [{"name": "q", "vhost": "/", "durable": True}]})
    broker.publish(b"needle", routing_key="q")
    inspector = inspector_of(broker)
    assert page.ask("search", text="needle", serial=0)
    assert inspector.snapshot()["rates"] == {"1:/q": {"in": 0.2}}
    broker.reset()
    assert page.ask("search", text="needle", serial=0) == []
    assert inspector.snapshot()["rates"] == {}


def test_outcomes_are_latest_first_and_filtered_by_any_text(page: Page, broker: Broker, rejected: int):
    broker.publish(b"two", routing_key="nowhere")

    def asked(kind: str, text: str = "", **more: Any) -> Any:
        return page.ask("outcomes", kind=kind, text=text, **more)

    published = asked("published")
    assert (published["kept"], published["total"]) == (2, 2)
    assert [each["told"] for each in published["messages"]] == ["unroutable", "routed to orders"]
    assert [each["message"] for each in published["messages"]][1] == rejected
    assert [each["body"][1] for each in asked("published", before=1)["messages"]] == ["one"]
    assert [each["body"][1] for each in asked("published", start=1, count=1)["messages"]] == ["one"]
    assert asked("published", "acme")["total"] == asked("published", "ORDERS")["total"] == 1
    [dead] = asked("dead-lettered")["messages"]
    assert (dead["told"], dead["headers"]) == ("rejected in queue orders", [[0, "tenant", "Acme", "s"]])
    assert asked("dropped")["messages"][0]["told"] == "unroutable"
    assert asked("returned")["messages"] == []
    with pytest.raises(Refusal, match="kind must be one of published, returned, dead-lettered, dropped"):
        asked("lost")


def test_broker_without_histories_has_no_outcomes():
    with Broker(management=True, history=0) as broker:
        page = Page.of(broker)
        broker.publish(b"", routing_key="nowhere")
        assert page.ask("outcomes", kind="published")["messages"] == []
        assert inspector_of(broker).snapshot()["broker"]["histories"] == {}


def test_flows_count_each_binding_on_way_of_message(broker: Broker, channel: Any):
    channel.exchange_declare("rest", "fanout")
    channel.exchange_declare("events", "direct", arguments={"alternate-exchange": "rest"})
    channel.exchange_declare("audit", "fanout")
    channel.exchange_bind("audit", "events", "a")
    channel.queue_declare("log")
    channel.queue_bind("log", "audit", "")
    channel.queue_bind("log", "rest", "")
    channel.basic_publish("events", "a", b"")
    channel.basic_publish("events", "b", b"")
    broker.queue("log").wait_for(ready=2)
    events, audit, rest, log = ("1:/events", "1:/audit", "1:/rest", "1:/log")
    assert inspector_of(broker).snapshot()["flows"] == {
        **{f"p{events}": 2, f"i{audit}": 1, f"i{rest}": 1},
        **{f"x{len(events)} {events}{audit}": 1, f"x{len(events)} {events}{rest}": 1},
        **{f"r{len(audit)} {audit}{log}": 1, f"r{len(rest)} {rest}{log}": 1},
    }


def test_rates_of_queue_are_means_over_five_seconds_of_broker_clock(
    broker: Broker, channel: Any, rejected: int
):
    inspector = inspector_of(broker)
    assert inspector.snapshot()["rates"] == {"1:/orders": {"in": 0.2, "out": 0.2}}
    method, _, _ = channel.basic_get("failed")
    channel.basic_ack(method.delivery_tag)
    broker.queue("failed").wait_for(ready=0, unacked=0)
    assert inspector.snapshot()["rates"]["1:/failed"] == {"out": 0.2, "ack": 0.2}
    broker.clock.advance(10)
    assert inspector.snapshot()["rates"] == {}


def test_stream_that_continues_has_only_new_lines(page: Page, broker: Broker):
    broker.publish(b"before", routing_key="q")
    with page.events() as events:
        first = events.next()[1]["timeline"]
    broker.publish(b"after", routing_key="q")
    with page.events(f"?serial={first['next']}&clears={first['clears']}") as events:
        second = events.next()[1]["timeline"]
    assert second["lines"][0][0] == first["next"] and not second["cleared"]
    broker.reset()
    broker.publish(b"anew", routing_key="q")
    with page.events(f"?serial={second['next']}&clears={second['clears']}") as events:
        assert events.next()[1]["timeline"]["cleared"]
