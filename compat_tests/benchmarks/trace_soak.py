"""Asks the traces of a soak: recordings to Parquet, and every question, by the clock on the wall.

Ten soaks (see `soak`) are recorded on a broker without sockets, each with a seed of its own, and written as
JSON Lines. Each recording is then linked as often as it takes to have so many events: for Spark every link is
a file and a run of its own. So all is read and parsed, though what is read again comes from the system's
cache.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from compat_tests.benchmarks.soak import soak
from fakeamqp.spark import local_session, traces

__all__ = ["HEAD", "record", "rows"]

HEAD = """| | seconds | of a processor | events per second | rows | a prototype, 12.1 million: seconds |
|---|---:|---:|---:|---:|---:|
"""
PROTOTYPE = {
    "JSON Lines to Parquet": 18.8,
    "latency_by_queue": 9.4,
    "redelivery_rate": 1.0,
    "unacked_age": 4.9,
    "unacked_high_water": 4.2,
    "fifo_violations": 2.8,
    "conformance": 3.1,
}
"""What single queries over rows made up for them took, on the same kind of machine. Its `conformance` was one
rule of twenty, and its rows had no frames of contents."""


def record(folder: Path, events: int, recordings: int, rounds: int = 200) -> int:
    """Write recordings that together have at least so many events; returns how many they have.

    Each different one is of so many rounds.
    """
    sizes = []
    for seed in range(recordings):
        trace = soak(rounds, seed)
        trace.jsonl(folder / f"soak-{seed}-0.jsonl")
        sizes.append(len(trace))
    total, copy = sum(sizes), 0
    while total < events:
        copy += 1
        for seed, size in enumerate(sizes):
            os.link(folder / f"soak-{seed}-0.jsonl", folder / f"soak-{seed}-{copy}.jsonl")
            total += size
            if total >= events:
                break
    return total


def rows(events: int, recordings: int = 10) -> Iterator[str]:
    """The rows of a table: seconds, events a second, and rows found."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        raw, saved = folder / "raw", folder / "saved"
        raw.mkdir()
        start = time.perf_counter()
        total = record(raw, events, recordings)
        yield _row("recording (linked)", time.perf_counter() - start, total, len(list(raw.iterdir())))
        # The usual compiler, since there is much to do.
        config = {
            "spark.driver.memory": "4g",
            "spark.sql.shuffle.partitions": 8,
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4",
        }
        with local_session(config=config, folder=folder / "session") as spark:
            java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
            start, spent = time.perf_counter(), _processor_seconds(java)
            traces.load(spark, raw).save(saved)
            seconds = time.perf_counter() - start
            yield _row("JSON Lines to Parquet", seconds, total, total, _processor_seconds(java) - spent)
            found = traces.load(spark, saved)
            for question in traces.QUERIES:
                start, spent = time.perf_counter(), _processor_seconds(java)
                answer = getattr(found, question)().collect()
                seconds = time.perf_counter() - start
                yield _row(question, seconds, total, len(answer), _processor_seconds(java) - spent)


def _processor_seconds(process: int) -> float:
    """What a process has used of all processors so far; on a busy machine it says more than the clock."""
    try:
        said = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(said[11]) + int(said[12])) / os.sysconf("SC_CLK_TCK")


def _row(name: str, seconds: float, events: int, found: int, spent: float = 0.0) -> str:
    before = PROTOTYPE.get(name, "")
    return f"| {name} | {seconds:.1f} | {spent:.1f} | {events / seconds:,.0f} | {found:,} | {before} |\n"
