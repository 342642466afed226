"""Asking an exchange what is bound to it."""

from __future__ import annotations

from compat_tests.unit.model.bench import Bench


def test_bindings_between_ignores_binding_arguments(bench: Bench) -> None:
    queue, other = bench.queue("q"), bench.queue("other")
    exchange = bench.host.exchanges.require("amq.direct")
    for destination, key, arguments in [
        (queue, "k", {}),
        (queue, "k", {"a": 1}),
        (queue, "l", {}),
        (other, "k", {}),
    ]:
        bench.host.bindings.bind("amq.direct", destination, key, arguments)
    bench.host.bindings.bind("amq.topic", queue, "k")
    found = exchange.bindings_between(queue, "k")
    assert [(each.routing_key, each.arguments) for each in found] == [("k", {}), ("k", {"a": 1})]
    assert exchange.bindings_between(other, "l") == []
    for each in found:
        bench.host.bindings.unbind("amq.direct", queue, "k", each.arguments)
    assert exchange.bindings_between(queue, "k") == []


def test_every_queue_is_bound_to_default_exchange_by_its_name(bench: Bench) -> None:
    default = bench.host.exchanges.require("")
    assert not default.is_bound()
    queue, other = bench.queue("q"), bench.queue("other")
    assert default.is_bound() and default.is_bound(queue) and default.is_bound(queue, "q", {})
    assert default.is_bound(None, "q") and not default.is_bound(None, "x")
    assert not default.is_bound(other, "q")
    assert not default.is_bound(queue, "q", {"a": 1})
    bench.host.queues.delete("q", None)
    assert not default.is_bound(queue)
