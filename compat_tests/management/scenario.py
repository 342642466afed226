"""What is asked of the HTTP API: requests in order, with a state made by AMQP and by HTTP.

Each request has a name. The same requests run on RabbitMQ and on the broker, and their answers are compared
by name (`comparison.py`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pika

from compat_tests.management.client import Api, Reply

__all__ = ["Request", "Target", "requests", "run"]

PASSWORD = "secret"
_PATIENCE = 30.0
_POLL = 0.1


@dataclass(frozen=True)
class Request:
    """One request.

    `path` is below `/api/` and may contain `{connection}`, `{channel}`, `{node}` and `{props}`. `user` is one
    of the scenario, or "" for none. `until` repeats the request until it is true of the answer: RabbitMQ
    collects its statistics every now and then.
    """

    name: str
    method: str
    path: str
    body: Any = None
    user: str = "guest"
    until: Callable[[Any], object] | None = field(default=None, repr=False)
    headers: dict[str, str] | None = None


@dataclass(frozen=True)
class Target:
    """A broker: its AMQP port and the URL of its HTTP API, with guest's credentials."""

    port: int
    url: str


def _measured(answer: Any) -> bool:
    return "consumers" in answer and "messages" in answer


def _busy(queue: Any) -> bool:
    counts = queue.get("message_stats", {})
    return (
        queue.get("messages_unacknowledged") == 2
        and queue.get("consumers") == 1
        and bool(queue.get("consumer_details"))
        and (counts.get("publish"), counts.get("deliver")) == (5, 2)
    )


_UNTIL: dict[str, Callable[[Any], object]] = {
    **dict.fromkeys(
        [
            f"queues/get{kind}"
            for kind in ("", "-quorum", "-stream", "-arguments", "-default-quorum", "-slash")
        ],
        _measured,
    ),
    "queues/get-default-quorum": _measured,
    "policies/on-queue": lambda queue: queue.get("policy") == "limits",
    "operator/on-queue": lambda queue: queue.get("operator_policy") == "cap",
    "clients/queue": _busy,
    "clients/connections": lambda c: len(c) == 1 and c[0].get("channels") == 2 and "recv_oct_details" in c[0],
    "clients/channels": lambda c: len(c) == 2 and all("message_stats" in each for each in c),
    "clients/exchange": lambda exchange: exchange.get("message_stats", {}).get("publish_in") == 2,
    "clients/exclusive": _measured,
}
"""What is awaited before an answer counts, by the name of the request."""


def _load() -> dict[str, list[Request]]:
    """The requests by section, as `scenario.jsonl` has them; `raw` is a body that is not sent as JSON."""
    sections: dict[str, list[Request]] = {}
    for line in Path(__file__).with_suffix(".jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if "section" in row:
            section = sections.setdefault(row["section"], [])
            continue
        if "raw" in row:
            row["body"] = row.pop("raw").encode()
        section.append(Request(until=_UNTIL.get(row["name"]), **row))
    return sections


SECTIONS = _load()
"""Those of `clients` are sent while clients of AMQP are connected, those of `end` take everything away."""


def requests() -> tuple[Request, ...]:
    """All requests, in order."""
    return tuple(request for section in SECTIONS.values() for request in section)


def run(target: Target) -> Iterator[tuple[Request, Reply, str]]:
    """Send all requests, and yield each with its answer and the name of the client's connection, if any."""
    api = Api(target.url)
    names = {"port": str(target.port), "node": quote(api.get("overview")["node"], safe="")}
    alone = [name for name in SECTIONS if name not in ("clients", "end")]
    for request in (each for name in alone for each in SECTIONS[name]):
        if "{props}" in request.path:
            names["props"] = _properties_key(api)
        yield request, send(api, request, names), ""
    with _clients(target):
        connection = _awaited(lambda: _connection(api))
        names["connection"] = quote(connection, safe="")
        names["channel"] = quote(f"{connection} (1)", safe="")
        for request in SECTIONS["clients"]:
            yield request, send(api, request, names), connection
    for request in SECTIONS["end"]:
        yield request, send(api, request, names), ""


def _connection(api: Api) -> str | None:
    for each in api.get("connections"):
        if each.get("client_properties", {}).get("connection_name") == "scenario":
            return str(each["name"])
    return None


def send(api: Api, request: Request, names: dict[str, str]) -> Reply:
    """Send one request, again and again where it waits for something."""
    if request.user == "":
        asking = api.log_out()
    elif request.user == "wrong":
        asking = api.log_in("guest", "wrong")
    elif request.user == "guest":
        asking = api
    else:
        asking = api.log_in(request.user, PASSWORD)
    path = request.path
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", value)
    deadline = time.monotonic() + _PATIENCE
    while True:
        reply = asking.request(request.method, path, request.body, request.headers)
        if request.until is None or time.monotonic() > deadline:
            return reply
        try:
            if reply.status != 200 or request.until(json.loads(reply.body)):
                return reply
        except (KeyError, TypeError, ValueError, AttributeError):
            pass
        time.sleep(_POLL)


def _properties_key(api: Api) -> str:
    found = api.get("bindings/%2F/e/amq.headers/q/work")
    return quote(found[0]["properties_key"], safe="") if found else "missing"


def _awaited(question: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + _PATIENCE
    while not (answer := question()) and time.monotonic() < deadline:
        time.sleep(_POLL)
    assert answer, "nothing came"
    return answer


@contextmanager
def _clients(target: Target) -> Iterator[None]:
    """One connection with two channels: one publishes, the other consumes and holds two of five messages."""
    parameters = pika.URLParameters(f"amqp://guest:guest@127.0.0.1:{target.port}/%2F")
    parameters.client_properties = {"connection_name": "scenario"}
    connection = pika.BlockingConnection(parameters)
    publishing = connection.channel()
    consuming = connection.channel()
    publishing.confirm_delivery()
    publishing.queue_declare("busy", durable=True)
    publishing.queue_declare("mine", exclusive=True)
    publishing.queue_bind("busy", "amq.direct", "busy")
    consuming.basic_qos(prefetch_count=2)
    got: list[Any] = []
    consuming.basic_consume("busy", lambda *arguments: got.append(arguments), consumer_tag="worker")
    for number in range(5):
        exchange = "amq.direct" if number < 2 else ""
        publishing.basic_publish(exchange, "busy", f"message {number}".encode())
    while len(got) < 2:
        connection.process_data_events(0.1)
    try:
        yield
    finally:
        # The API has closed it; the client reads that, and then closes its socket.
        with suppress(pika.exceptions.AMQPError):
            while connection.is_open:
                connection.process_data_events(0.1)
