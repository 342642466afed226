"""How far a message travels: files, functions and moves between files of five journeys through the package.

    python -m compat_tests.benchmarks.journeys [--files]

Each journey is one input of a client to a broker without sockets, up to the bytes that answer it. It is
counted once everything on its way is warm. A file and a function of the package count once; a move is a call
from one file of the package into another.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import fakeamqp
from compat_tests.benchmarks.cases import publish_bytes
from compat_tests.benchmarks.cases_0_10 import subscriber, to_queue, transfer
from compat_tests.scripted.amqp_0_9_1 import Client
from compat_tests.unit.faults.server import FaultServer
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

__all__ = ["JOURNEYS", "Journey", "measure"]

_PACKAGE = f"{Path(fakeamqp.__file__).parent}/"
_WARM = 3
_PUBLISH = publish_bytes("", "q")


class Journey(NamedTuple):
    """What one input passes through."""

    files: frozenset[str]
    functions: frozenset[CodeType]
    moves: int


def measure(connection: Any, octets: Callable[[], bytes]) -> Journey:
    """Count what an input passes through, after some that warm its way; `octets` makes each."""
    functions: set[CodeType] = set()
    moves = 0

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal moves
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(_PACKAGE):
            return
        functions.add(code)
        caller = frame.f_back
        if caller is not None and caller.f_code.co_filename.startswith(_PACKAGE):
            moves += caller.f_code.co_filename != code.co_filename

    before = sys.getprofile()
    for profiled in (*[None] * _WARM, profile):
        sent = octets()
        sys.setprofile(profiled)
        try:
            connection.receive(sent)
            answer = connection.pending()
        finally:
            sys.setprofile(before)
        connection.sent(sum(map(len, answer)))
    return Journey(
        frozenset(each.co_filename.removeprefix(_PACKAGE) for each in functions), frozenset(functions), moves
    )


def _client(*setup: m.Method, trace: bool, **arguments: object) -> Client:
    client = FaultServer("rabbitmq-4.3", trace=trace).client()
    client.declare("dead")
    client.declare("q", arguments=arguments)
    for method in setup:
        client.send(method)
    return client


def _publish(*, trace: bool) -> Journey:
    client = _client(m.BasicConsume(queue="q", no_ack=True), trace=trace)
    return measure(client.connection, lambda: _PUBLISH)


def _reject() -> Journey:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client = _client(m.BasicConsume(queue="q"), trace=False, **arguments)

    def delivered() -> bytes:
        client.send_bytes(_PUBLISH)
        tag = client.inbox[-3].method.delivery_tag  # type: ignore[union-attr]
        return client.method_frame(m.BasicReject(delivery_tag=tag, requeue=False))

    return measure(client.connection, delivered)


def _fault() -> Journey:
    client = _client(m.ConfirmSelect(), trace=True)
    client.server.faults.on("basic.publish").nack()  # type: ignore[attr-defined]
    return measure(client.connection, lambda: _PUBLISH)


def _transfer() -> Journey:
    session = subscriber(accept_mode=1, window=False)
    return measure(session.client.connection, lambda: transfer(to_queue()))


JOURNEYS: Mapping[str, Callable[[], Journey]] = {
    "publish to deliver, no tap": lambda: _publish(trace=False),
    "publish to deliver, default trace": lambda: _publish(trace=True),
    "reject to dead letter": _reject,
    "nack() fault firing": _fault,
    "0-10 transfer": _transfer,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", action="store_true", help="name the files as well")
    options = parser.parse_args(arguments)
    measured = {name: journey() for name, journey in JOURNEYS.items()}
    print("| Journey | Files | Functions | Moves |\n|---|---:|---:|---:|")
    for name, each in measured.items():
        print(f"| {name} | {len(each.files)} | {len(each.functions)} | {each.moves} |")
    if options.files:
        for name, each in measured.items():
            print("\n".join(("", name, *(f"    {file}" for file in sorted(each.files)))))


if __name__ == "__main__":
    main()
