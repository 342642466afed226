"""Where the time goes: `python -m compat_tests.benchmarks.side_by_side.profile` (`make bench-profile`).

py-spy takes samples of the threads that hold an interpreter lock, in the client's process and in that of
`fakeamqp serve`. A sample counts for the innermost frame that belongs to one of `PARTS`. The shares are kept
beside this module, and are a table of docs/benchmarks.md.

`--flame FILE CASE TARGET` draws the flame graph of one case instead.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from compat_tests.benchmarks.side_by_side import page
from compat_tests.benchmarks.side_by_side.targets import IN_LOOP, IN_THREAD, SERVE
from compat_tests.reliability import results

__all__ = ["PARTS", "main", "shares"]

PARTS = {
    "client": r"\((pika|aio_pika|aiormq|pamqp)/|\((pika_steps|aio_pika_steps|client)\.py",
    "asyncio": r"\(asyncio/",
    "broker: transport": r"\(fakeamqp/(runtime/|connection|adapters)",
    "broker: protocol": r"\(fakeamqp/protocols/",
    "broker: model": r"\(fakeamqp/model/",
    "broker: trace": r"\(fakeamqp/trace/",
    "broker: other": r"\(fakeamqp/",
}
"""The frames of each part, by their files; a frame belongs to the first that fits."""
_CASES = {
    "pika: publish then consume": (IN_THREAD, SERVE),
    "pika: consume, ack each": (IN_THREAD, SERVE),
    "pika: confirmed publish, window 1": (IN_THREAD, SERVE),
    "aio-pika: publish then consume": (IN_THREAD, IN_LOOP),
    "aio-pika: confirmed publish, window 1": (IN_THREAD, IN_LOOP),
}
# Some seconds of each, of which the start of the interpreter is a small part.
_MUCH = ("--rounds", "10", "--fraction", "3")


def record(case: str, target: str, form: str, file: Path, much: Sequence[str] = _MUCH) -> None:
    """Take samples of a case on one target."""
    spy = Path(sysconfig.get_path("scripts"), "py-spy")
    command = [
        *(str(spy) if spy.exists() else "py-spy", "record", "--gil", "--subprocesses", "--threads"),
        *("--rate", "500", "--format", form, "--output", str(file), "--", sys.executable),
        *("-m", "compat_tests.benchmarks.side_by_side", case, "--targets", target, *much),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def shares(samples: Iterable[str]) -> dict[str, float]:
    """The percentage of each part, from lines of stacks and numbers, as py-spy writes them."""
    found: Counter[str] = Counter()
    for line in samples:
        stack, _, count = line.rpartition(" ")
        *_, frames = re.split(r'";(?=thread)', stack)
        if "side_by_side.client" not in stack and "fakeamqp serve" not in stack:
            continue  # The process that starts the others.
        if "importlib._bootstrap" in stack or ("MainThread" in stack and ";measure (client.py" not in stack):
            continue
        for frame in reversed(frames.split(";")):
            part = next((part for part, files in PARTS.items() if re.search(files, frame)), None)
            if part is not None:
                found[part] += int(count)
                break
    return {part: round(100 * found[part] / max(1, found.total()), 1) for part in PARTS}


def main(arguments: Sequence[str] | None = None) -> None:
    """Take samples of all cases, and write the table; or draw one flame graph."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--flame", nargs=3, metavar=("FILE", "CASE", "TARGET"), help="draw a flame graph")
    given = parser.parse_args(arguments)
    if given.flame:
        file, case, target = given.flame
        record(case, target, "flamegraph", Path(file))
        return
    found: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "stacks")
        for case, targets in _CASES.items():
            for target in targets:
                record(case, target, "raw", file)
                measured = shares(file.read_text("utf-8").splitlines())
                found.setdefault(case, {})[target] = measured
                print(case, target, measured, flush=True)
    results.write(page.PROFILE, "make bench-profile", {"parts": list(PARTS), "cases": found}, page.FOLDER)
    page.main()


if __name__ == "__main__":
    main()
