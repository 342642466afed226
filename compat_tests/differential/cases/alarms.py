"""Memory and disk alarms: who is told, when, by which words, and which frames are still read."""

from __future__ import annotations

from compat_tests.differential.codec import encode_method, frame
from compat_tests.differential.raw_client import CAPABILITIES
from compat_tests.differential.script import *

MEMORY, DISK, BOTH = ((operate("set_alarms", *each)) for each in (["memory"], ["disk"], ["memory", "disk"]))
ALL_CLEAR = operate("set_alarms")
UNTOLD = {name: name != "connection.blocked" for name in CAPABILITIES}


def send(body: str = "1", key: str = "@q", ch: int = 1, on: str = "b", **arguments: object) -> Step:
    """Publish, and wait for nothing."""

    def do(scene: Scene) -> list[str]:
        named = scene.named({"routing_key": key, **arguments})
        scene.client(on).publish(ch, body=body, **named)
        return []

    return do


def send_call(method: str, ch: int = 1, on: str = "b", **arguments: object) -> Step:
    """Call a method, and wait for nothing."""

    def do(scene: Scene) -> list[str]:
        scene.client(on).tell(ch, method, **scene.named(arguments))
        return []

    return do


def quiet(on: str = "b") -> Step:
    return pause(0.3, on=on)


def told(on: str = "b") -> Step:
    """What comes next; without a wait for silence."""
    return arrivals(on=on)


def alarmed(case_id: str, *steps: object) -> None:
    """A case that ends with the alarm; other cases wait for it."""
    each(f"alarm/{case_id}", *steps, [ALL_CLEAR], alone=True)  # type: ignore[arg-type]


CLEAR: list[Step] = [ALL_CLEAR]
SENT: list[Step] = [queue(), connect("b"), MEMORY, send("1")]
"""Client b has published during an alarm, and is blocked."""
QUIET, TOLD = quiet(), told()

alarmed(
    "second-publish-is-not-read",
    [queue(), connect("b"), MEMORY, send("1"), send("2")],
    QUIET,
    get(),
    get(),
    CLEAR,
    QUIET,
    get(),
    get(),
)
alarmed(
    "other-methods-after-the-publish",
    [queue(), connect("b"), MEMORY, send("1"), send_call("queue.declare", queue="@other")],
    TOLD,
    CLEAR,
    TOLD,
)
alarmed(
    "consumer-on-the-blocked-connection",
    [queue(), connect("b"), consume(on="b"), MEMORY, send("1", "@none")],
    QUIET,
    publish(),
    QUIET,
    [send_call("basic.ack", delivery_tag=1)],
    QUIET,
)
alarmed(
    "ends-before-anything-is-published",
    [queue(), connect("b"), MEMORY, ALL_CLEAR],
    publish(on="b"),
    QUIET,
    get(),
)
alarmed("begins-and-ends-untold", [connect("b"), MEMORY], QUIET, CLEAR, QUIET, quiet("a"))
alarmed(
    "publisher-before-it",
    [queue(), connect("b"), publish(on="b"), MEMORY],
    QUIET,
    [send("2")],
    QUIET,
    CLEAR,
    TOLD,
)
alarmed("again", SENT, TOLD, CLEAR, QUIET, [MEMORY], QUIET, [send("2")], QUIET, CLEAR, TOLD)
alarmed(
    "two-publishers",
    [queue(), connect("b"), connect("c"), MEMORY, send("1"), send("2", on="c")],
    quiet("b"),
    quiet("c"),
    CLEAR,
    quiet("b"),
    quiet("c"),
)
alarmed("second-of-two-ends-first", SENT, TOLD, [BOTH], QUIET, [MEMORY], QUIET, CLEAR, TOLD)
alarmed("first-of-two-ends-first", SENT, TOLD, [BOTH], QUIET, [DISK], QUIET, CLEAR, TOLD)
alarmed("both-told-at-the-publish", [queue(), connect("b"), BOTH, send("1")], QUIET, CLEAR, QUIET)
alarmed(
    "disk-then-memory-told-at-the-publish", [queue(), connect("b"), DISK, BOTH, send("1")], TOLD, CLEAR, TOLD
)
alarmed(
    "confirms-of-the-blocked-publisher",
    [queue(), connect("b"), CONFIRMS.by("b"), MEMORY, send("1")],
    QUIET,
    CLEAR,
    QUIET,
)
alarmed(
    "mandatory-of-the-blocked-publisher",
    [connect("b"), MEMORY, send("1", "@none", mandatory=1)],
    QUIET,
    CLEAR,
    QUIET,
)
alarmed(
    "method-of-a-publish-without-its-content",
    [connect("b"), MEMORY, lambda scene: scene.b.send_bytes(_METHOD) or []],
    QUIET,
    CLEAR,
    QUIET,
)
alarmed(
    "publish-to-a-missing-exchange",
    [connect("b"), MEMORY, send("1", "k", exchange="@none")],
    QUIET,
    CLEAR,
    QUIET,
)
alarmed(
    "untold-publisher-of-two",
    [queue(), connect("b", capabilities=UNTOLD), MEMORY, send("1"), send("2")],
    QUIET,
    get(),
    get(),
    CLEAR,
    QUIET,
    get(),
)
alarmed("no-capabilities", [queue(), connect("b", capabilities={}), MEMORY, send("1")], QUIET, CLEAR, QUIET)
alarmed(
    "close-of-the-blocked-publisher",
    SENT,
    QUIET,
    [send_call("connection.close", ch=0, reply_code=200)],
    QUIET,
    CLEAR,
    QUIET,
)
alarmed(
    "second-channel-of-the-blocked-publisher",
    [queue(), connect("b"), open_channel(2).by("b"), MEMORY, send("1")],
    TOLD,
    [send_call("queue.declare", ch=2, queue="@other")],
    QUIET,
    CLEAR,
    TOLD,
)
alarmed(
    "connection-opened-during-it-publishes",
    [queue(), MEMORY, connect("b"), send("1")],
    QUIET,
    [send("2")],
    QUIET,
    CLEAR,
    QUIET,
    get(),
    get(),
)
alarmed(
    "closed-by-operator-while-blocked",
    [operate("add_user", "@u", "p"), queue(), connect("b", user="@u", password="p"), MEMORY, send("1")],
    QUIET,
    [operate("close_connections_of", "@u", "m")],
    QUIET,
    [operate("delete_user", "@u")],
)
alarmed(
    "everything-but-publishes",
    [MEMORY],
    exchange(auto_delete=1),
    queue(),
    call("queue.bind", queue="@q", exchange="@x", routing_key="k"),
    get(),
    consume(),
    call("basic.cancel", consumer_tag="c"),
    call("tx.select"),
    call("tx.commit"),
    call("queue.delete", queue="@q"),
)
_METHOD = frame(1, 1, encode_method("basic.publish", routing_key="of nobody", mandatory=1))
