"""Traces to try the analytics on: any there could be, and those of random programs on a broker."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import strategies as st

from compat_tests.programs.check import play
from compat_tests.programs.program import Program
from compat_tests.scripted.amqp_0_9_1 import Server
from fakeamqp.trace import Recorder, Trace
from fakeamqp.trace.json_form import event_to_json

__all__ = ["TRACES", "Record", "lines", "mutated", "traced", "write_runs"]

Record = dict[str, Any]

# Few of each, so that records have to do with each other.
_ALIASES = st.sampled_from(["c1"] * 7 + ["c2"])
_CHANNELS = st.sampled_from([0] + [1] * 9 + [2])
_TAGS = st.sampled_from([0, 1, 1, 2, 2, 3, 4])
_CONSUMERS = st.sampled_from(["a", "b"])
_QUEUES = st.sampled_from(["q"] * 5 + ["r"])
_BOOLEANS = st.booleans()
_NONE = st.none()
_SIZES = st.sampled_from([0, 1, 2])
_DIRECTIONS = st.sampled_from(["received", "sent"])


def _frame(direction: Any, name: str, **fields: Any) -> st.SearchStrategy[Record]:
    """A method that goes that way."""
    return st.fixed_dictionaries(
        {
            "alias": _ALIASES,
            "kind": st.just("frame"),
            "name": st.just(name),
            "direction": st.just(direction) if isinstance(direction, str) else direction,
            "channel": _CHANNELS,
            "size": st.just(20),
            "fields": st.fixed_dictionaries(fields),
        }
    )


def _content(name: str, **more: Any) -> st.SearchStrategy[Record]:
    return st.fixed_dictionaries(
        {
            "alias": _ALIASES,
            "kind": st.just("frame"),
            "name": st.just(name),
            "direction": _DIRECTIONS,
            "channel": _CHANNELS,
            "size": _SIZES,
            **more,
        }
    )


def _message(number: int) -> Record:
    properties = {"priority": 1} if number == 5 else {}
    return {"message": {"number": number, "properties": properties, "size": 1}}


def _model(name: str, **facts: Any) -> st.SearchStrategy[Record]:
    """An event of the model. Few messages, of which some have a priority."""
    message = st.integers(1, 5).map(_message)
    return st.fixed_dictionaries(
        {
            "alias": _ALIASES,
            "kind": st.just("model"),
            "name": st.just(name),
            "facts": st.fixed_dictionaries({"message": message, "queue": _QUEUES, **facts}),
        }
    )


def _of_delivery(name: str, **more: Any) -> st.SearchStrategy[Record]:
    where = {"channel": _CHANNELS, "delivery_tag": _TAGS, "consumer": _CONSUMERS | _NONE}
    return _model(name, **where, **more)


_CONFIRM = {"delivery_tag": _TAGS, "multiple": _BOOLEANS}
_GIVES = {"delivery_tag": _TAGS, "redelivered": _BOOLEANS}
_CONSUMER = {"consumer_tag": _CONSUMERS}
_THEMES: dict[str, list[st.SearchStrategy[Record]]] = {
    "ends": [
        st.fixed_dictionaries(
            {
                "alias": _ALIASES,
                "kind": st.just("connection"),
                "name": st.just("connected"),
                "text": st.sampled_from(["connected: AMQP 0-0-9-1"] * 3 + ["connected: AMQP 1-1-0-9"]),
            }
        ),
        _frame("received", "channel.open"),
        _frame(_DIRECTIONS, "channel.close"),
        _frame(_DIRECTIONS, "channel.close-ok"),
        _frame(_DIRECTIONS, "connection.close"),
        _frame(_DIRECTIONS, "connection.close-ok"),
        _frame(_DIRECTIONS, "heartbeat"),
        _frame(_DIRECTIONS, "queue.declare"),
        _frame("received", "basic.ack", **_CONFIRM),
    ],
    "contents": [
        _frame("received", "basic.publish"),
        _frame("sent", "basic.deliver", **_CONSUMER, **_GIVES),
        _content("content header", body_size=_SIZES),
        _content("content header", body_size=_SIZES),
        _content("content body"),
        _content("content body"),
        _frame(_DIRECTIONS, "channel.close"),
    ],
    "confirms": [
        *[_frame("received", "basic.publish")] * 5,
        _frame("received", "confirm.select"),
        _frame("sent", "basic.ack", **_CONFIRM),
        _frame("sent", "basic.nack", **_CONFIRM, requeue=_BOOLEANS),
    ],
    "consumers": [
        _frame("received", "basic.consume", **_CONSUMER, no_wait=_BOOLEANS, no_ack=_BOOLEANS),
        _frame("sent", "basic.consume-ok", **_CONSUMER),
        _frame(_DIRECTIONS, "basic.cancel", **_CONSUMER, no_wait=_BOOLEANS),
        _frame("sent", "basic.cancel-ok", **_CONSUMER),
        *[_frame("sent", "basic.deliver", **_CONSUMER, **_GIVES)] * 4,
        _of_delivery("delivered", redelivered=_BOOLEANS),
    ],
    "settlements": [
        _frame("received", "basic.get", no_ack=_BOOLEANS),
        _frame("sent", "basic.get-ok", **_GIVES),
        *[_frame("sent", "basic.deliver", **_CONSUMER, **_GIVES)] * 4,
        _model("consumer added", channel=_CHANNELS, consumer=_CONSUMERS, no_ack=_BOOLEANS),
        _frame("received", "basic.ack", **_CONFIRM),
        _frame("received", "basic.nack", **_CONFIRM, requeue=_BOOLEANS),
        _frame("received", "basic.reject", delivery_tag=_TAGS, requeue=_BOOLEANS),
        st.sampled_from(["basic.recover", "basic.recover-async"]).flatmap(
            lambda name: _frame("received", name, requeue=_BOOLEANS)
        ),
        st.sampled_from(["tx.rollback", "channel.close", "heartbeat", "heartbeat", "heartbeat"]).flatmap(
            lambda name: _frame("received", name)
        ),
    ],
    "queues": [
        *[_model("enqueued")] * 12,
        _model("dead-lettered"),
        *[_of_delivery("delivered", redelivered=st.sampled_from([False, False, False, True]))] * 12,
        _of_delivery("acked"),
        _of_delivery("rejected"),
        _of_delivery("requeued"),
    ],
    "windows": [
        _model(
            "consumer added",
            channel=_CHANNELS,
            consumer=_CONSUMERS,
            no_ack=st.sampled_from([False, False, True]),
            prefetch=st.integers(0, 2),
            shares_prefetch=_BOOLEANS,
        ),
        *[_of_delivery("delivered", redelivered=st.just(False))] * 4,
        _of_delivery("acked"),
        _frame("received", "basic.qos", prefetch_count=st.integers(0, 2), **{"global": _BOOLEANS}),
        _frame("received", "channel.open"),
    ],
}
_BEGINNINGS = st.sampled_from(
    [
        [],
        *[
            [
                {"alias": "c1", "kind": "connection", "name": "connected"},
                *(
                    {
                        "alias": "c1",
                        "kind": "frame",
                        "name": "channel.open",
                        "direction": "received",
                        "channel": number,
                        "size": 5,
                    }
                    for number in (1, 2)
                ),
            ]
        ]
        * 3,
    ]
)


def _numbered(beginning: list[Record], records: list[Record]) -> list[Record]:
    return [
        {**record, "number": number, "time": number / 4}
        for number, record in enumerate([*beginning, *records])
    ]


_ANYTHING = [each for theme in _THEMES.values() for each in theme]


def _through_a_queue(enqueued: list[int], delivered: list[int], others: list[Record]) -> list[Record]:
    """Messages come into one queue in some order, and go out of it in some order; other things happen."""
    records = [*(_passes("enqueued", number) for number in enqueued), *others]
    return records + [
        _passes("delivered", number, channel=1, delivery_tag=place, consumer="a", redelivered=False)
        for place, number in enumerate(delivered, 1)
    ]


def _passes(name: str, number: int, **facts: Any) -> Record:
    facts = {"message": _message(number), "queue": "q", **facts}
    return {"alias": "c1", "kind": "model", "name": name, "facts": facts}


_ORDERS = st.builds(
    _through_a_queue,
    st.permutations([1, 2, 3, 4, 5]),
    st.permutations([1, 2, 3, 4, 5]),
    st.lists(st.sampled_from(_THEMES["queues"]).flatmap(lambda each: each), max_size=3),
)
# What has to do with each other stands together, or most of a trace would be nonsense.
TRACES = st.sampled_from([*_THEMES, None, "order"]).flatmap(
    lambda theme: st.builds(
        _numbered,
        _BEGINNINGS,
        _ORDERS
        if theme == "order"
        else st.lists(
            st.sampled_from(_THEMES[theme] if theme else _ANYTHING).flatmap(lambda each: each),
            min_size=16,
            max_size=32,
        ),
    )
)
"""Lines of recordings that may break any rule, without what the analytics do not look at."""


def traced(program: Program, personality: str = "rabbitmq-4.2") -> Trace | None:
    """The trace of a program on a broker, up to its end; None where the broker closes the connection."""
    server = Server(personality)
    recorder = Recorder(server.clock.now, 100_000)
    server.state.tap = recorder
    closed = any(text.startswith("connection.close(") for told in play(program, server) for text in told)
    return None if closed else recorder.trace()


def mutated(records: Sequence[Record], chance: Random) -> list[Record]:
    """The same with a few things that are wrong, numbered anew."""
    changed = copy.deepcopy(list(records))
    if chance.random() < 0.2:
        for record in changed:
            if record["name"] == "consumer added":
                record["facts"]["prefetch"] = 1
    for _ in range(chance.randint(1, 12)):
        # Any kind of record as often as any other.
        name = chance.choice(sorted({record["name"] for record in changed}))
        places = [place for place, record in enumerate(changed) if record["name"] == name]
        place = chance.choice(places)
        record = changed[place]
        values = record.get("fields") or record.get("facts") or {}
        change = chance.choice(["leave out", "repeat", "swap", "move", "change", "change", "change"])
        if change == "leave out" and len(changed) > 1:
            del changed[place]
        elif change == "repeat":
            changed.insert(chance.randrange(place, len(changed)) + 1, copy.deepcopy(record))
        elif change == "swap":
            other = chance.choice(places)
            changed[place], changed[other] = changed[other], record
        elif change == "move":
            changed.insert(chance.randrange(len(changed)), changed.pop(place))
        elif "body_size" in record:
            record["body_size"] += chance.choice([-1, 1])
        elif value := next((each for each in _CHANGED if each in values), None):
            before = values[value]
            step = chance.choice([-1, 1])
            values[value] = not before if isinstance(before, bool) else max(0, before + step)
    return [{**record, "number": number} for number, record in enumerate(changed)]


_CHANGED = ("no_ack", "prefetch", "prefetch_count", "delivery_tag", "multiple", "redelivered")
"""Fields and facts that are changed; of an event the first that it has."""


def lines(trace: Trace) -> list[Record]:
    """What a recording of this trace says, an event in a line."""
    return [{"number": number, **event_to_json(event)} for number, event in enumerate(trace.events)]


def write_runs(path: Path, runs: Mapping[str, list[Record]]) -> None:
    """Write all runs to one file."""
    with path.open("w") as file:
        file.write(json.dumps({"format": "fakeamqp trace", "version": 1}) + "\n")
        for run, records in runs.items():
            for record in records:
                file.write(json.dumps({"run": run, **record}) + "\n")
