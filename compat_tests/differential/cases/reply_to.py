"""Direct reply-to."""

from __future__ import annotations

import re
from typing import Any

from compat_tests.differential.script import *

# --- direct reply-to

RT = "amq.rabbitmq.reply-to"
last("reply-to/consume-with-ack", consume(RT, no_ack=0))
last("reply-to/consume", consume(RT, no_ack=1))
last("reply-to/consume-auto-tag", consume(RT, tag="", no_ack=1))
last("reply-to/consume-twice", consume(RT, tag="1", no_ack=1), consume(RT, tag="2", no_ack=1))
last("reply-to/consume-exclusive", consume(RT, tag="1", no_ack=1, exclusive=1))
each(
    "reply-to/consume-cancel-consume",
    consume(RT, tag="1", no_ack=1),
    call("basic.cancel", consumer_tag="1"),
    consume(RT, tag="2", no_ack=1),
)
last("reply-to/duplicate-tag", queue(), consume(tag="1"), consume(RT, tag="1", no_ack=1))
last("reply-to/publish-without-consumer", queue(), publish("@q", props={"reply_to": RT}))
last("reply-to/declare", queue(RT))
last("reply-to/declare-passive", queue(RT, passive=1))
last("reply-to/declare-nowait", queue(RT, no_wait=1))
last("reply-to/declare-sets-last", queue(RT), get(""))
last("reply-to/declare-passive-with-consumer", consume(RT, no_ack=1), queue(RT, passive=1))
last("reply-to/delete", call("queue.delete", queue=RT))
last("reply-to/purge", call("queue.purge", queue=RT))
last("reply-to/bind", bind(RT, "amq.direct"))
last("reply-to/get", get(RT))
last("reply-to/publish-to-bare-name", publish(RT, mandatory=1))
last("reply-to/declare-passive-bogus-suffix", queue(RT + ".bogus", passive=1))
last("reply-to/declare-bogus-suffix", queue(RT + ".bogus"))
last("reply-to/publish-bogus-suffix", publish(RT + ".bogus", mandatory=1))
last("reply-to/publish-bogus-suffix-confirm", CONFIRMS, publish(RT + ".bogus", mandatory=1, settle=0.2))


ASKED: list[Step] = [
    queue(),
    consume(RT, tag="rt", no_ack=1),
    publish(body="ask", props={"reply_to": RT}),
    keep("reply", r"reply_to='([^']*)'", get()),
]
"""Client a has sent a question and waits; $reply is where the answer goes."""
GONE: list[Step] = [*ASKED, call("basic.cancel", consumer_tag="rt")]
"""Client a waits no longer."""


def answer(**arguments: Any) -> Call:
    return publish("$reply", "answer", on="b", **arguments)


each("reply-to/round-trip", ASKED, answer(), arrivals())
each("reply-to/two-answers", ASKED, answer(), answer(), arrivals(2))
each(
    "reply-to/answer-mandatory-confirm", ASKED, CONFIRMS.by("b"), answer(mandatory=1, settle=0.2), arrivals()
)
each("reply-to/other-exchange", ASKED, answer(exchange="amq.direct", mandatory=1))
each("reply-to/passive-declare-live", ASKED, queue("$reply", passive=1, on="b"))
each("reply-to/declare-live", ASKED, queue("$reply", on="b"))
each("reply-to/delete-live", ASKED, call("queue.delete", queue="$reply", on="b"))
each("reply-to/passive-declare-gone", GONE, queue("$reply", passive=1, on="b"))
each("reply-to/answer-gone-mandatory", GONE, answer(mandatory=1))
each(
    "reply-to/answer-gone-channel-closed",
    [*ASKED, call("channel.close")],
    answer(mandatory=1, settle=0.2),
)


@case("reply-to/same-name-each-message")
def _(scene: Scene) -> list[str]:
    names: set[str] = set()
    for _ in range(2):
        for step in ASKED[-2:] if names else ASKED:
            step(scene)
        names.add(scene.kept["reply"])
    return [f"{len(names)} name"]


@case("reply-to/name-shape")
def _(scene: Scene) -> list[str]:
    for step in ASKED:
        step(scene)
    return [re.sub(r"[A-Za-z0-9+/=_-]+", "#", scene.kept["reply"].removeprefix(RT))]
