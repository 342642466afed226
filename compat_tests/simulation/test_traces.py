"""A seed gives the same trace in every process: all frames, their octets, and their times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fakeamqp import Broker, simulation

pytest.importorskip("aio_pika")

SEEDS = 5
PROCESSES = (("0", []), ("1", ["-X", "dev"]), ("4711", ["-O"]))
"""The seed of the hashes of strings, and options of Python: asyncio's debug mode, and no assertions."""


def test_a_seed_gives_the_same_trace_in_every_process(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    for hash_seed, options in PROCESSES:
        folder = tmp_path / hash_seed
        folder.mkdir()
        program = Path(__file__).with_name("trace_program.py")
        done = subprocess.run(
            [sys.executable, *options, str(program), str(folder), str(SEEDS)],
            cwd=folder,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
    traces = []
    for seed in range(SEEDS):
        first, *others = ((tmp_path / hash_seed / f"{seed}.jsonl").read_bytes() for hash_seed, _ in PROCESSES)
        for other in others:
            assert other.splitlines() == first.splitlines(), seed
        traces.append(first)
    # What is compared: a restart, a reset connection, and seeds that differ.
    assert len(set(traces)) == SEEDS
    for trace in traces:
        assert trace.count(b'"connection.close"') >= 2
        assert trace.count(b'"basic.publish"') >= 12


@pytest.mark.parametrize("made", ["outside", "inside"])
def test_a_trace_begins_at_the_wall_time_of_the_simulation(made: str) -> None:
    async def main(broker: Broker | None) -> float | None:
        async with broker or Broker(runtime="asyncio") as running:
            return running.trace.wall_time

    broker = Broker(runtime="asyncio") if made == "outside" else None
    assert simulation.run(main(broker), now=1_000_000.0) == 1_000_000.0


def test_repr_of_pamqp_frames_has_no_address_in_a_simulation() -> None:
    commands = pytest.importorskip("pamqp.commands")

    async def main() -> str:
        return str(commands.Basic.Qos())

    assert simulation.run(main(), seed=1) == "<Basic.Qos object at 0x0>"
    frame = commands.Basic.Qos()
    assert str(frame) == f"<Basic.Qos object at {id(frame):#x}>"
