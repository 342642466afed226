"""Write the typed methods of 0-9-x from the facts in this directory.

    python spec/generate.py            write the modules
    python spec/generate.py --check    change nothing; name the stale modules and exit with 1

One `Dialect` says which facts become which package; an emitter (`emit_0_9_x`) turns the facts
into modules. Those are laid out the way `ruff format` would, so that they do not depend on an installed
formatter.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from emit_0_9_x import emit_0_9_x
from layout import Dialect

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SPEC = Path(__file__).resolve().parent
WIRE = SPEC.parent / "fakeamqp" / "wire"

DIALECTS = (
    Dialect(
        source="amqp-0-9-1.toml",
        package="amqp_0_9_1",
        emit=emit_0_9_x,
        title="AMQP 0-9-1 as RabbitMQ speaks it",
        renames={("", "nowait"): "no-wait", ("basic", "reserved"): "cluster-id"},
    ),
    Dialect(
        source="amqp-0-9.toml",
        package="amqp_0_9",
        emit=emit_0_9_x,
        title="AMQP 0-9",
        renames={("", "nowait"): "no-wait", ("message", "bytes"): "octets"},
        described_elsewhere={"basic": "amqp_0_9_1"},
    ),
)


def generate() -> dict[Path, str]:
    """Every generated file and its text."""
    files = {}
    for dialect in DIALECTS:
        facts = tomllib.loads((SPEC / dialect.source).read_text(encoding="utf-8"))
        for name, text in dialect.emit(dialect, facts).items():
            files[WIRE / dialect.package / name] = text
    return files


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the wire room from the protocol facts.")
    parser.add_argument("--check", action="store_true", help="only name stale files; exit with 1 if any")
    check: bool = parser.parse_args(arguments).check
    stale = [
        (path, text)
        for path, text in generate().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        print(f"{'stale' if check else 'written'}: {path.relative_to(SPEC.parent)}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
