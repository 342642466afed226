"""Direct reply-to."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import *

# --- direct reply-to

RT = "amq.rabbitmq.reply-to"
last("reply-to/duplicate-tag", queue(), consume(tag="1"), consume(RT, tag="1", no_ack=1))
last("reply-to/declare-nowait", queue(RT, no_wait=1))
last("reply-to/declare-passive-with-consumer", consume(RT, no_ack=1), queue(RT, passive=1))
last("reply-to/bind", bind(RT, "amq.direct"))
last("reply-to/declare-passive-bogus-suffix", queue(RT + ".bogus", passive=1))
last("reply-to/declare-bogus-suffix", queue(RT + ".bogus"))
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


each("reply-to/two-answers", ASKED, answer(), answer(), arrivals(2))
each(
    "reply-to/answer-mandatory-confirm", ASKED, CONFIRMS.by("b"), answer(mandatory=1, settle=0.2), arrivals()
)
each("reply-to/answer-gone-mandatory", GONE, answer(mandatory=1))
each(
    "reply-to/answer-gone-channel-closed",
    [*ASKED, call("channel.close")],
    answer(mandatory=1, settle=0.2),
)
