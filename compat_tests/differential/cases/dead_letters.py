"""Dead letters, expiry, priorities and length limits."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import *

# --- dead letters (shape of x-death)


def dead(case_id: str, *deed: Step, **arguments: Any) -> None:
    """What a message looks like that died of a deed in @q, which has these arguments."""
    dying = {"x-dead-letter-exchange": "@dlx", **arguments}
    each(
        f"dead/{case_id}",
        [queue("@dl"), exchange("@dlx", "fanout"), bind("@dl", "@dlx"), queue(arguments=dying)],
        list(deed),
        until("basic.get-ok", get("@dl")),
    )


REJECTED = [get(no_ack=0), reject(1)]
dead("rejected", publish(), *REJECTED)
dead("expired-queue-ttl", publish(), **{"x-message-ttl": 1})
dead("expired-message-ttl", publish(props={"expiration": "1", "headers": {"h": 1}}))
dead("maxlen", publish(body="1"), publish(body="2"), **{"x-max-length": 1})
dead("routing-key-override", publish(), *REJECTED, **{"x-dead-letter-routing-key": "other"})
dead("cc-in-message", publish(props={"headers": {"CC": ["k2"], "BCC": ["k3"]}}), *REJECTED)
dead("other-exchange", bind("@q", "amq.direct", "@k"), publish("@k", exchange="amq.direct"), *REJECTED)
INVENTED = {
    "count": Tagged("l", 1),
    "reason": "rejected",
    "queue": "@q",
    "time": Tagged("T", 5),
    "exchange": "",
    "routing-keys": ["@q"],
}
dead("client-sent-x-death", publish(props={"headers": {"x-death": [INVENTED]}}), *REJECTED)


def passing_on(name: str, to: str, **arguments: Any) -> Call:
    """A queue whose dead messages go to another."""
    dying = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": to, **arguments}
    return queue(name, arguments=dying)


each(
    "dead/twice-same-queue",
    [passing_on("@q", "@q2"), passing_on("@q2", "@q"), publish()],
    [until("get-ok", get("@q", no_ack=0)), reject(1), until("get-ok", get("@q2", no_ack=0)), reject(2)],
    [until("get-ok", get("@q", no_ack=0)), reject(3), until("get-ok", get("@q2", no_ack=0)), reject(4)],
    until("get-ok", get("@q", no_ack=0)),
)
each(
    "dead/cycle-expired-dropped",
    [passing_on("@q", "@q", **{"x-message-ttl": 1}), publish(), pause()],
    queue(passive=1),
)
each("ttl/zero-no-consumer", [queue_with(x_message_ttl=0)], publish(settle=0.1), get())
each("ttl/zero-with-consumer", [queue_with(x_message_ttl=0)], consume(), publish(settle=0.2))
each("ttl/expiration-kept-on-delivery", [queue()], publish("@q", props={"expiration": "60000"}), get())
each(
    "ttl/expires-head", [queue_with(x_message_ttl=50)], publish(), until("message_count=0", queue(passive=1))
)
each("ttl/queue-expires", [queue_with(x_expires=100)], pause(0.6), queue(passive=1))


def ranked(case_id: str, *steps: Step | list[Step], **arguments: Any) -> None:
    """A case with a queue of priorities whose dead letters go to @dead."""
    made = queue_with(
        x_max_priority=5, x_dead_letter_exchange="", x_dead_letter_routing_key="@dead", **arguments
    )
    each(f"priority/{case_id}", [queue("@dead"), made], *steps)


def of_priorities(*bodies: str) -> list[Step]:
    """A message for each body, whose digit is the priority, one after the other."""
    return [publish(body=body, props={"priority": int(body[-1])}, settle=0.05) for body in bodies]


ranked(
    "nacked-together",
    [
        consume(),
        *of_priorities("a1", "b3", "c1", "d3", "e0", "f2"),
        call("basic.nack", delivery_tag=5, multiple=1),
    ],
    [pause(0.2)],
    contents("@dead"),
)
ranked(
    "nacked-together-got",
    [*of_priorities("a1"), get(no_ack=0), *of_priorities("b3"), get(no_ack=0), *of_priorities("c1", "d3")],
    [get(no_ack=0), get(no_ack=0), call("basic.nack", delivery_tag=0, multiple=1), pause(0.2)],
    contents("@dead"),
)
ranked(
    "nacked-by-two-consumers",
    [consume(tag="x"), consume(tag="y"), *of_priorities("a1", "b3", "c1", "d3", "e0", "f2", "g4", "h5")],
    [call("basic.nack", delivery_tag=0, multiple=1), pause(0.2)],
    contents("@dead"),
)
ranked(
    "rejected-one-by-one",
    [consume(), *of_priorities("a1", "b3", "c2"), reject(1), reject(2), reject(3), pause(0.2)],
    contents("@dead"),
)
ranked(
    "returned-together",
    [consume(), *of_priorities("a1", "b3", "c1", "d3", "e0"), call("basic.cancel", consumer_tag="c")],
    [call("basic.nack", delivery_tag=0, multiple=1, requeue=1), pause(0.2)],
    contents(),
)
ranked(
    "expired-together",
    [*of_priorities("a1", "b3", "c1", "d3", "e0"), pause(0.9)],
    contents("@dead"),
    x_message_ttl=500,
)
ranked(
    "expired-when-looked-at",
    [*(publish(body=f"{p}", props={"priority": p, "expiration": "300"}, settle=0.05) for p in (1, 3, 2))],
    [publish(body="stays", props={"priority": 2}), pause(0.8)],
    contents("@dead"),
    contents(),
)
ranked(
    "beyond-the-length",
    [*of_priorities("a1", "b3", "c1", "d3", "e0", "f2"), pause(0.2)],
    contents("@dead"),
    contents(),
    x_max_length=2,
)
