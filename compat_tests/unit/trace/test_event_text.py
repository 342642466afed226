from __future__ import annotations

from types import SimpleNamespace

import pytest

from fakeamqp.trace.events import ConnectionEvent, model_text, publisher_name

MESSAGE = SimpleNamespace(
    body=b"two apples",
    exchange="events",
    routing_key="order.placed",
    publisher=SimpleNamespace(name="a -> b"),
)


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("broken")


@pytest.mark.parametrize(
    ("event", "facts", "text"),
    [
        (
            "published",
            {"message": MESSAGE, "outcome": "unroutable", "virtual_host": "other"},
            "message with exchange='events' routing_key='order.placed' in virtual host 'other': unroutable",
        ),
        (
            "dropped",
            {"message": MESSAGE, "queue": "orders", "reason": "expired"},
            "message b'two apples' dropped from queue 'orders' because it had expired",
        ),
        (
            "dropped",
            {"message": MESSAGE, "queue": "orders", "reason": "maxlen"},
            "message b'two apples' dropped from queue 'orders' because the queue was full",
        ),
        (
            "dropped",
            {"message": MESSAGE, "queue": "orders", "reason": "dead-letter cycle"},
            "message b'two apples' dropped from queue 'orders' because of dead-letter cycle",
        ),
        (
            "dropped",
            {
                "message": MESSAGE,
                "queue": "orders",
                "reason": "rejected",
                "detail": "dead-letter exchange 'x' does not exist",
                "virtual_host": "b",
            },
            "message b'two apples' dropped from queue 'orders' in virtual host 'b' because it was rejected, "
            "and dead-letter exchange 'x' does not exist",
        ),
        (
            "dropped",
            {
                "message": MESSAGE,
                "queue": "orders",
                "reason": "deleted",
                "detail": "the queue expired unused",
            },
            "message b'two apples' dropped from queue 'orders' because the queue expired unused",
        ),
        (
            "dropped",
            {
                "message": MESSAGE,
                "queue": None,
                "reason": "unroutable",
                "detail": "no queue was there for it",
            },
            "message b'two apples' dropped because no queue was there for it",
        ),
        (
            "dead-lettered",
            {"message": MESSAGE, "queue": "orders", "reason": "expired", "exchange": "x"},
            "message b'two apples' dead-lettered from queue 'orders' to exchange 'x' because it had expired",
        ),
        (
            "delay over",
            {"message": MESSAGE, "exchange": "later", "outcome": "routed to orders"},
            "message b'two apples' published by exchange 'later' after its delay: routed to orders",
        ),
        ("renamed", {"old": "a\n", "count": 2}, r"renamed old='a\n' count=2"),
        ("published", {}, "published (its facts cannot be shown: KeyError)"),
        ("odd", {"what": Broken()}, "odd (its facts cannot be shown: RuntimeError)"),
        ("dropped", {}, "message None dropped from queue None because of None"),
    ],
)
def test_model_event_is_described_in_words(event: str, facts: dict[str, object], text: str):
    assert model_text(event, facts) == text


def test_publisher_name_of_an_event_is_the_publisher_of_its_message():
    assert publisher_name({"message": MESSAGE}) == "a -> b"
    assert publisher_name({"message": SimpleNamespace(publisher=None)}) is None
    assert publisher_name({"message": SimpleNamespace(publisher=SimpleNamespace(name=7))}) is None
    assert publisher_name({}) is None


def test_connection_event_is_described_in_words():
    def text(event: str, detail: str) -> str:
        return ConnectionEvent(0.0, "a -> b", "c1", event, detail).text

    assert text("connected", "") == "connected: a -> b"
    assert text("closed", "by the client\n") == r"closed: by the client\n"
    assert text("unblocked", "") == "unblocked"
