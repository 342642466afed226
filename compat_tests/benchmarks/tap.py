"""What the tap costs when nothing is installed, and when what is installed is about something else.

For the first, the package is copied to a temporary folder twice, and out of one copy every test for the tap
on the way of a message is taken. Each copy runs in a process of its own; they hold the conversations of
`trace` in short spells by turns. What is counted is processor time, and the processes are started anew a few
times, since luck with addresses is good for a per cent either way.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import fakeamqp
from compat_tests.benchmarks.cases import MANY, Timed
from compat_tests.benchmarks.trace import CONVERSATIONS, Pair, spent, turns
from compat_tests.unit.faults.server import FaultContext, FaultServer
from fakeamqp.faults import Faults

__all__ = ["HEAD", "HOT", "INSTALLED", "answer", "copies", "installed", "nothing", "rows", "strip"]

HOT: Mapping[str, Mapping[str, int]] = {
    "model/virtual_host/virtual_host.py": {"offer": 2},
    "protocols/amqp_0_9_1/server_channel.py": {"confirm_now": 1},
    "protocols/amqp_0_9_1/base_channel.py": {"note_settled": 1},
    "protocols/amqp_0_9_1/delivering.py": {"deliver": 1, "get_ok": 1},
    "protocols/amqp_0_9_1/server_connection.py": {"_cut_frames": 3},
    "protocols/base/server_connection.py": {"_handle": 1},
    "protocols/amqp_0_9_1/basic.py": {"settle": 1},
    "protocols/base/outbox.py": {"write": 1},
}
"""By file and function on the way of a message: in how many places it looks for a tap."""

INSTALLED: dict[str, Callable[[Faults], object]] = {
    "unrelated rule": lambda faults: faults.on("queue.delete").drop(),
    "rule for other publishes": lambda faults: faults.on("basic.publish", routing_key="elsewhere").drop(),
    "rule that does not fire": lambda faults: faults.on("basic.publish").after(10**9).drop(),
    "network of another connection": lambda faults: faults.network.on("elsewhere").latency(1),
}
"""What can be installed that does nothing to the conversations."""

_COLUMNS = ("per second", "nothing installed", *INSTALLED)
HEAD = f"| | {' | '.join(_COLUMNS)} |\n|---|{'---:|' * len(_COLUMNS)}\n"
"""The head of the table that `rows` goes under."""

_ROOT = Path(__file__).parents[2]
_CHILD = """
import sys
sys.path[:0] = sys.argv[1:]
from compat_tests.benchmarks.tap import answer
answer(sys.argv[1])
"""


# --- a package without a tap ----------------------------------------------------------------------------


class _Taker(ast.NodeTransformer):
    """Takes out of functions what they do for the sake of a tap."""

    def __init__(self, places: Mapping[str, int]) -> None:
        self._places = places
        self._function: str | None = None
        self.found = dict.fromkeys(places, 0)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.name not in self._places:
            return self.generic_visit(node)
        self._function = node.name
        self.generic_visit(node)
        self._function = None
        for each in ast.walk(node):
            if getattr(each, "body", None) == []:
                each.body = [ast.Pass()]  # type: ignore[attr-defined]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        """`tap = broker.tap` goes."""
        if self._function and _is_tap(node.targets[0]) and _is_tap(node.value):
            return None
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """`tap is not None` is never so, and `tap is None` always."""
        if self._function and _is_tap(node.left) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            self.found[self._function] += 1
            return ast.Constant(isinstance(node.ops[0], ast.Is))
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        decides = isinstance(node.op, ast.Or)
        if any(_is(value, decides) for value in node.values):
            return ast.Constant(decides)
        node.values = [value for value in node.values if not _is(value, not decides)] or node.values[:1]
        return node.values[0] if len(node.values) == 1 else node

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        return (node.orelse or None) if _is(node.test, False) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """A tap that is handed on is None."""
        if self._function and _is_tap(node) and isinstance(node.ctx, ast.Load):
            self.found[self._function] += 1
            return ast.Constant(None)
        return self.generic_visit(node)


def _is_tap(node: ast.AST) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "tap") or (
        isinstance(node, ast.Name) and node.id == "tap"
    )


def _is(node: ast.AST, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def strip(source: str, places: Mapping[str, int]) -> str:
    """A module without a tap in these functions.

    Raises:
        LookupError: they look for one in more or fewer places, or something of it would be left.
    """
    tree = ast.parse(source)
    taker = _Taker(places)
    taker.visit(tree)
    if taker.found != dict(places):
        raise LookupError(f"the tap is looked for in {taker.found} places, not in {dict(places)}")
    functions = {each.name: each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
    for name in places:
        if any(_is_tap(node) for each in functions[name].body for node in ast.walk(each)):
            raise LookupError(f"{name} still has to do with the tap")
    return ast.unparse(ast.fix_missing_locations(tree))


def copies(folder: Path) -> tuple[Path, Path]:
    """Two folders in this one with copies of the package: as it is, and without a tap on the hot path.

    Raises:
        LookupError: see `strip`.
    """
    package = Path(fakeamqp.__file__).parent
    here, gone = folder / "as_it_is", folder / "without_tap"
    for each in (here, gone):
        shutil.copytree(package, each / "fakeamqp", ignore=shutil.ignore_patterns("__pycache__"))
    for name, places in HOT.items():
        path = gone / "fakeamqp" / name
        try:
            path.write_text(strip(path.read_text("utf-8"), places), "utf-8")
        except LookupError as problem:
            raise LookupError(f"{name}: {problem}; is HOT up to date?") from problem
    return here, gone


# --- nothing installed ----------------------------------------------------------------------------------


def answer(folder: str) -> None:
    """Hold the conversations whose names come in, a spell for each line, and say how long they took."""
    assert Path(fakeamqp.__file__).is_relative_to(folder), fakeamqp.__file__
    runs: dict[str, Timed] = {}
    for line in sys.stdin:
        name = line.rstrip("\n")
        if name not in runs:
            runs[name] = conversation(name, None)
            runs[name]()
        print(spent(runs[name]), flush=True)


def _ask(process: subprocess.Popen[str], name: str) -> float:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(name + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def nothing(processes: int, rounds: int) -> dict[str, Pair]:
    """By conversation: the package without a tap, and as it is with nothing installed.

    Args:
        processes: how many pairs of processes, one after the other.
        rounds: spells each way, in each of them.
    """
    pairs = {name: Pair([], []) for name in CONVERSATIONS}
    with tempfile.TemporaryDirectory() as folder:
        here, gone = copies(Path(folder))
        for _ in range(processes):
            with ExitStack() as stack:
                off, on = (
                    stack.enter_context(
                        subprocess.Popen(
                            [sys.executable, "-c", _CHILD, str(each), str(_ROOT)],
                            stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE,
                            text=True,
                            env={**os.environ, "PYTHONHASHSEED": "0"},
                        )
                    )
                    for each in (gone, here)
                )
                for name, pair in pairs.items():
                    turns(partial(_ask, off, name), partial(_ask, on, name), 1)
                    more = turns(partial(_ask, off, name), partial(_ask, on, name), rounds)
                    pair.off.extend(more.off)
                    pair.on.extend(more.on)
    return pairs


# --- something else installed ---------------------------------------------------------------------------


class _Context(FaultContext):
    """A context whose connections can be wrapped."""

    wrap: Callable[[Any, Callable[[], object]], Any] | None = None

    def wrap_connections(self, wrap: Callable[[Any, Callable[[], object]], Any] | None) -> None:
        self.wrap = wrap


def conversation(name: str, install: Callable[[Faults], object] | None) -> Timed:
    """One of the conversations, with a broker in which something is installed."""
    setup, octets = CONVERSATIONS[name]
    server = FaultServer(trace=False)
    context = _Context(server)
    client = server.client()
    client.declare("q")
    for method in setup:
        client.send(method)
    if install is not None:
        install(Faults(context))
    connection = client.connection if context.wrap is None else context.wrap(client.connection, lambda: None)

    def run() -> None:
        connection.receive(octets)
        connection.sent(sum(map(len, connection.pending())))

    return run


def installed(name: str, install: Callable[[Faults], object], rounds: int) -> Pair:
    """One of the conversations with nothing installed, and with this, so many times each way."""
    off, on = conversation(name, None), conversation(name, install)
    off(), on()
    return turns(partial(spent, off), partial(spent, on), rounds)


def rows(processes: int, rounds: int) -> Iterator[str]:
    """The rows of a table: messages a second with nothing installed, and what part of that each costs."""
    pairs = nothing(processes, rounds)
    for name, pair in pairs.items():
        costs = [f"{pair.cost:.1%}"]
        costs += [f"{installed(name, install, rounds).cost:.0%}" for install in INSTALLED.values()]
        yield f"| {name} | {MANY / median(pair.on):,.0f} | {' | '.join(costs)} |\n"
