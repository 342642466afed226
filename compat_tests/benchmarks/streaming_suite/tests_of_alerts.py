import json

import pipeline
import pytest

QUEUES = {"orders": "orders", "orders-again": "orders", "alerts": "alerts", "dead": "dead-letters"}
KINDS = {"orders": "fanout", "alerts": "topic", "dead-letters": "fanout"}


@pytest.fixture
def broker(amqp_broker):
    host = {"vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
    amqp_broker.load_definitions(
        {
            "exchanges": [
                {"name": name, "type": kind, "internal": False, **host} for name, kind in KINDS.items()
            ],
            "queues": [{"name": name, **host} for name in QUEUES],
            "bindings": [
                {
                    "source": exchange,
                    "vhost": "/",
                    "destination": queue,
                    "destination_type": "queue",
                    "routing_key": "#",
                    "arguments": {},
                }
                for queue, exchange in QUEUES.items()
            ],
        }
    )
    return amqp_broker


@pytest.fixture
def run(broker, make_amqp_stream):
    """Publish orders, run both queries on them, and return the alerts and the dead letters so far."""
    orders, poison = make_amqp_stream(), make_amqp_stream()
    numbers = iter(range(1000))

    def run(*bodies):
        for body in bodies:
            text = body if isinstance(body, str) else json.dumps(body)
            broker.publish(text, exchange="orders", message_id=str(next(numbers)))
        orders.run_available(pipeline.alerts, queue="orders", exchange="alerts")
        poison.run_available(pipeline.dead_letters, queue="orders-again", exchange="dead-letters")
        alerts = [
            (each.routing_key, json.loads(each.body)["total"]) for each in broker.queue("alerts").messages
        ]
        return sorted(alerts), [bytes(each.body).decode() for each in broker.queue("dead").messages]

    return run


def order(number, customer, total, minute):
    ts = f"2026-01-01T{12 + minute // 60:02}:{minute % 60:02}:00Z"
    return {"order_id": str(number), "customer": customer, "total": total, "ts": ts}


LATER = order(999, "nobody", 0, 59)  # Its time ends the windows before it.


def test_a_large_total_is_an_alert(run):
    alerts, dead = run(order(1, "ann", 90, 1), order(2, "ann", 60, 2), order(3, "bob", 60, 2), LATER)
    assert alerts == [("alert.ann", 150.0)]
    assert dead == []


def test_an_order_counts_once(run):
    alerts, _ = run(order(1, "ann", 90, 1), order(1, "ann", 90, 1), order(2, "bob", 101, 2), LATER)
    assert alerts == [("alert.bob", 101.0)]


def test_poison_is_a_dead_letter(run):
    alerts, dead = run("{not json", order(1, "ann", 150, 1), LATER)
    assert alerts == [("alert.ann", 150.0)]
    assert dead == ["{not json"]


def test_a_second_run_knows_of_the_first(run):
    assert run(order(1, "ann", 90, 1)) == ([], [])
    alerts, _ = run(order(1, "ann", 90, 1), order(2, "ann", 60, 3), LATER)
    assert alerts == [("alert.ann", 150.0)]
