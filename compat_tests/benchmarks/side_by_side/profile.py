"""Where the time goes: `python -m compat_tests.benchmarks.side_by_side.profile` (`make bench-profile`).

py-spy takes samples of the threads that hold an interpreter lock, in the client's process and in that of
`fakeamqp serve`. A sample counts for the innermost frame that belongs to one of `PARTS`. The shares are kept
beside this module, and are a table of docs/benchmarks-internal.md.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from compat_tests.benchmarks.side_by_side import page
from compat_tests.benchmarks.side_by_side.cases import CASES, Case
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
    "pika: confirmed publish, window 1": (IN_THREAD, SERVE),
    "aio-pika: publish then consume": (IN_THREAD, IN_LOOP),
    "aio-pika: confirmed publish, window 1": (IN_THREAD, IN_LOOP),
}
# Some seconds of each, in one measurement: py-spy mistakes a later thread of the broker for the first one.
_MUCH = 20


def record(case: Case, target: str, file: Path) -> None:
    """Take samples of a case on one target."""
    spy = Path(sysconfig.get_path("scripts"), "py-spy")
    command = [
        *(str(spy) if spy.exists() else "py-spy", "record", "--gil", "--subprocesses", "--threads"),
        *("--rate", "500", "--format", "raw", "--output", str(file), "--", sys.executable),
        *("-m", "compat_tests.benchmarks.side_by_side.client", case.name, target),
    ]
    number = f"{case.count * _MUCH}\n"
    subprocess.run(command, input=number, text=True, check=True, stdout=subprocess.DEVNULL)


def shares(samples: Iterable[str]) -> dict[str, float]:
    """The percentage of each part, from lines of stacks and numbers, as py-spy writes them."""
    found: Counter[str] = Counter()
    for line in samples:
        stack, _, count = line.rpartition(" ")
        if "importlib._bootstrap" in stack:
            continue  # The start of the interpreter.
        for frame in reversed(stack.split(";")):
            part = next((part for part, files in PARTS.items() if re.search(files, frame)), None)
            if part is not None:
                found[part] += int(count)
                break
    return {part: round(100 * found[part] / max(1, found.total()), 1) for part in PARTS}


def main() -> None:
    """Take samples of all cases, and write the table."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "stacks")
        for case in CASES:
            for target in _CASES.get(case.name, ()):
                record(case, target, file)
                measured = shares(file.read_text("utf-8").splitlines())
                found.setdefault(case.name, {})[target] = measured
                print(case.name, target, measured, flush=True)
    results.write(page.PROFILE, "make bench-profile", {"parts": list(PARTS), "cases": found}, page.FOLDER)
    page.main()


if __name__ == "__main__":
    main()
