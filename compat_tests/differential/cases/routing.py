"""Topic and headers exchanges: which messages a binding matches; what stays without a consumer."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import *

# --- what stays without a consumer

each("auto-delete/queue-never-consumed", [queue(auto_delete=1)], get(), queue(passive=1))
each(
    "auto-delete/queue-survives-connection-without-consumer",
    [queue(auto_delete=1, on="b")],
    drop("b"),
    pause(0.2),
    queue(passive=1),
)
each(
    "bind/durable-queue-transient-exchange",
    [queue(durable=1)],
    [exchange()],
    bind(),
    call("queue.delete", queue="@q"),
)

# --- topic


def topic(case_id: str, pattern: str, *keys: str) -> None:
    """Which routing keys a binding pattern matches."""

    @case(f"topic/{case_id}")
    def _(scene: Scene) -> list[str]:
        queue()(scene)
        exchange(type="topic")(scene)
        bind(routing_key=pattern)(scene)
        matches = (not publish(key, exchange="@x", mandatory=1)(scene) for key in keys)
        return [" ".join(f"{key!r}={int(match)}" for key, match in zip(keys, matches, strict=True))]


topic("plain", "a.b", "a.b", "a", "a.b.c", "A.b", "a.b.", ".a.b")
topic("star", "a.*.c", "a.b.c", "a..c", "a.c", "a.b.b.c")
topic("star-only", "*", "", "a", "a.b", ".")
topic("hash-only", "#", "", "a", "a.b", "..")
topic("hash-end", "a.#", "a", "a.", "a.b", "a.b.c", "ab", "", "b")
topic("hash-begin", "#.a", "a", ".a", "b.a", "c.b.a", "a.b", "ba")
topic("hash-middle", "a.#.b", "a.b", "a..b", "a.x.b", "a.x.y.b", "a", "b")
topic("hash-hash", "#.#", "", "a", "a.b")
topic("hash-hash-middle", "a.#.#.b", "a.b", "a.x.b", "a.x.y.b", "ab")
topic("many-hash", "#.a.#.b.#", "a.b", "x.a.y.b.z", "b.a", "a", "x.a.a.b.b")
topic("hash-star", "#.*", "", "a", "a.b", ".")
topic("star-hash", "*.#", "", "a", "a.b", ".")
topic("empty-key", "", "", "a", ".")
topic("empty-words", "a..b", "a..b", "a.b", "a.x.b")
topic("trailing-dot", "a.", "a.", "a", "a.b")
topic("leading-dot", ".a", ".a", "a", "b.a")
topic("dot", ".", ".", "", "a.b")
topic("star-in-word", "a*", "a*", "ab", "a")
topic("hash-in-word", "a#.b", "a#.b", "a.b", "ax.b")
topic("literal-wildcards-in-key", "a.*", "a.*", "a.#", "*.a")
topic("non-ascii", "\u00e9.*", "\u00e9.a", "e.a")

# --- headers


def headers(case_id: str, arguments: Any, *tries: Any) -> None:
    """Which headers the arguments of a binding match; None stands for no headers at all."""

    @case(f"headers/{case_id}")
    def _(scene: Scene) -> list[str]:
        queue()(scene)
        exchange(type="headers")(scene)
        bind(arguments=arguments)(scene)
        told = []
        for sent in tries:
            props = {} if sent is None else {"headers": sent}
            match = not publish("k", exchange="@x", mandatory=1, props=props)(scene)
            told.append(f"{sent}={int(match)}")
        return [" ".join(told)]


headers("no-arguments", {}, None, {}, {"a": 1})
headers(
    "all-explicit",
    {"x-match": "all", "a": 1, "b": "2"},
    None,
    {},
    {"a": 1},
    {"a": 1, "b": "2"},
    {"a": 1, "b": "2", "c": 3},
    {"a": 2, "b": "2"},
)
headers("all-is-default", {"a": 1, "b": "2"}, {"a": 1}, {"a": 1, "b": "2"})
headers(
    "any", {"x-match": "any", "a": 1, "b": "2"}, None, {}, {"a": 1}, {"b": "2"}, {"a": 2}, {"a": 2, "b": "2"}
)
headers("all-only", {"x-match": "all"}, None, {}, {"a": 1})
headers("any-only", {"x-match": "any"}, None, {}, {"a": 1})
headers("void-all", {"x-match": "all", "a": None}, {}, {"a": 1}, {"a": None}, {"a": "x"})
headers("void-any", {"x-match": "any", "a": None}, {}, {"a": 1}, {"a": None}, {"b": 1})
headers("message-void", {"x-match": "all", "a": 1}, {"a": None})
headers("x-ignored-all", {"x-match": "all", "x-a": 1, "b": 1}, {"b": 1}, {"x-a": 2, "b": 1}, {"x-a": 1})
headers("x-ignored-any", {"x-match": "any", "x-a": 1, "b": 1}, {"x-a": 1}, {"b": 1})
headers(
    "all-with-x",
    {"x-match": "all-with-x", "x-a": 1, "b": 1},
    {"b": 1},
    {"x-a": 1, "b": 1},
    {"x-a": 2, "b": 1},
)
headers("any-with-x", {"x-match": "any-with-x", "x-a": 1, "b": 1}, {"x-a": 1}, {"b": 1}, {"x-a": 2})
headers(
    "int-widths",
    {"x-match": "all", "a": Tagged("I", 1)},
    {"a": Tagged("b", 1)},
    {"a": Tagged("B", 1)},
    {"a": Tagged("s", 1)},
    {"a": Tagged("u", 1)},
    {"a": Tagged("i", 1)},
    {"a": Tagged("l", 1)},
    {"a": Tagged("L", 1)},
    {"a": Tagged("d", 1.0)},
    {"a": Tagged("f", 1.0)},
    {"a": True},
    {"a": "1"},
    {"a": Tagged("T", 1)},
    {"a": Tagged("D", (0, 1))},
)
headers(
    "double",
    {"x-match": "all", "a": Tagged("d", 1.0)},
    {"a": Tagged("d", 1.0)},
    {"a": Tagged("f", 1.0)},
    {"a": Tagged("I", 1)},
    {"a": Tagged("d", 1.5)},
)
headers(
    "float-half", {"x-match": "all", "a": Tagged("f", 0.5)}, {"a": Tagged("d", 0.5)}, {"a": Tagged("f", 0.5)}
)
headers("bool", {"x-match": "all", "a": True}, {"a": True}, {"a": False}, {"a": 1}, {"a": "true"})
headers("string-vs-bytes", {"x-match": "all", "a": "s"}, {"a": "s"}, {"a": b"s"}, {"a": "S"})
headers("bytes", {"x-match": "all", "a": b"s"}, {"a": "s"}, {"a": b"s"})
headers(
    "timestamp",
    {"x-match": "all", "a": Tagged("T", 5)},
    {"a": Tagged("T", 5)},
    {"a": Tagged("l", 5)},
    {"a": Tagged("T", 6)},
)
headers(
    "decimal",
    {"x-match": "all", "a": Tagged("D", (1, 10))},
    {"a": Tagged("D", (1, 10))},
    {"a": Tagged("D", (2, 100))},
    {"a": Tagged("D", (0, 1))},
)
headers(
    "nested-table",
    {"x-match": "all", "a": {"k": 1, "j": 2}},
    {"a": {"k": 1, "j": 2}},
    {"a": {"j": 2, "k": 1}},
    {"a": {"k": Tagged("l", 1), "j": 2}},
    {"a": {"k": 1}},
)
headers(
    "array", {"x-match": "all", "a": [1, "x"]}, {"a": [1, "x"]}, {"a": [Tagged("l", 1), "x"]}, {"a": ["x", 1]}
)
headers("case-sensitive-key", {"x-match": "all", "A": 1}, {"a": 1}, {"A": 1})
headers("duplicate-keys-any", [("x-match", "any"), ("a", 1), ("a", 2)], {"a": 1}, {"a": 2})
headers("duplicate-keys-all", [("x-match", "all"), ("a", 1), ("a", 2)], {"a": 1}, {"a": 2})
headers("duplicate-keys-message", {"x-match": "all", "a": 2}, [("a", 1), ("a", 2)], [("a", 2), ("a", 1)])
