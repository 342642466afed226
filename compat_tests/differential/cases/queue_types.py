"""Virtual hosts with a default queue type: what a declaration without a type gives, and what it equals."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import *


def typed(kind: Any = None, **flags: Any) -> Step:
    """A durable queue of this type, or without one."""
    arguments = flags.pop("arguments", {})
    if kind is not None:
        arguments = {"x-queue-type": kind, **arguments}
    return queue(**{"durable": 1, "arguments": arguments, **flags})


for _default in ("classic", "quorum", "stream"):
    _there = connect("a", vhost=f"probe-{_default}")

    def there(name: str, *steps: Any, default: str = _default, connected: Step = _there) -> None:
        """A case in the virtual host with this default."""
        each(f"default-type/{default}-{name}", [connected], *steps)

    there("is-what-is-declared", [typed()], typed("quorum"))
    there("is-not-classic", [typed()], typed("classic"))
    there("again-without", [typed()], typed())
    for _kind in ("classic", "quorum", "stream"):
        there(f"again-without-{_kind}", [typed(_kind)], typed())
    there("undefined", [typed("undefined")], typed())
    there("undefined-again", [typed("undefined")], typed("undefined"))
    there("undefined-second", [typed()], typed("undefined"))
    there("undefined-then-named", [typed("undefined")], typed(_default))
    there("empty", typed(""))
    there("transient", typed(durable=0))
    there("transient-passive", [typed(durable=0)], queue(passive=1), typed("classic", durable=0))
    there("exclusive", typed(durable=0, exclusive=1), typed("classic", durable=0, exclusive=1))
    there("exclusive-durable", typed(exclusive=1), typed("classic", exclusive=1))
    there("auto-delete", typed(auto_delete=1), typed("classic", auto_delete=1))
    there("transient-auto-delete", typed(durable=0, auto_delete=1))
    there("server-named", queue("", durable=1))
    there("server-named-exclusive", queue("", exclusive=1))
    there("max-priority", typed(arguments={"x-max-priority": 5}))
    there("delivery-limit", typed(arguments={"x-delivery-limit": 5}))
    there("max-age", typed(arguments={"x-max-age": "1h"}))
    there("max-priority-exclusive", typed(durable=0, exclusive=1, arguments={"x-max-priority": 5}))
    there("message-ttl", typed(arguments={"x-message-ttl": 5000}))
    there("if-unused", [typed()], call("queue.delete", queue="@q", if_unused=1))
    there("get", [typed(), publish(body="m")], until("get-ok", get(), tries=10))
    there("consume-no-ack", [typed()], consume(no_ack=1))
    there("purge", [typed()], call("queue.purge", queue="@q"))
    there("bound", [typed()], bind(exchange="amq.direct", routing_key="k"))
