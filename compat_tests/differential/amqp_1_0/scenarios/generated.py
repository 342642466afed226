"""Names that a broker generates, made the same for all brokers."""

from __future__ import annotations

import re

from compat_tests.differential.amqp_1_0.scenarios.play import Play

_GENERATED = re.compile(
    r"amq\.rabbitmq\.reply-to\.[\w+/=%-]+\.[\w+/=%-]+"
    r"|fakeamqp[\w-]*@localhost"
    r"|amq\.gen-[\w-]{22}|(amq\.dyn\.gen|amq\.dyn-.*?)-[\w-]{22}(?![\w%-])"
)


def _placeholder(found: re.Match[str]) -> str:
    text = found.group()
    if text.startswith("amq.rabbitmq"):
        return "amq.rabbitmq.reply-to.*"
    if text.startswith("fakeamqp"):
        return "node"
    return f"{text[:-22]}*"


_RANDOM = re.compile(r"[0-9a-f]{32}")


def same_names(play: Play) -> None:
    """Replace what was generated in the transcript, and the line breaks of terms."""
    for number, line in enumerate(play.lines):
        shown = _RANDOM.sub("*", _GENERATED.sub(_placeholder, line))
        is_term = " supported: {" in shown or "Attach re" in shown
        play.lines[number] = shown.replace(", ", ",") if is_term else shown
