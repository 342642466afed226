"""Makes attempts on the broker and on RabbitMQ, and writes the results and the page.

python -m compat_tests.attempts [NAME...] [--only fakeamqp|rabbitmq]
"""

from __future__ import annotations

import argparse

from compat_tests.attempts import page
from compat_tests.attempts.attempt import Attempt
from compat_tests.attempts.every import ATTEMPTS
from compat_tests.attempts.targets import NAMES, broker_process, rabbitmq
from compat_tests.differential.rabbitmq_node import available
from compat_tests.reliability import results


def main() -> None:
    """Make the attempts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ATTEMPTS)}; default: all")
    parser.add_argument("--only", choices=("fakeamqp", "rabbitmq"))
    options = parser.parse_args()
    found = page.recorded()
    for name in options.names or ATTEMPTS:
        made = found.setdefault(name, {})
        for target in NAMES:
            if options.only and (target == NAMES[0]) != (options.only == NAMES[0]):
                continue
            if target != NAMES[0] and (ATTEMPTS[name].rabbitmq or available("4.3")):
                continue
            made[target] = _made(ATTEMPTS[name], target)
            # After each, since they take long.
            results.write(page.NAME, "make attempts", {"attempts": found})
            page.PAGE.write_text(page.text(), encoding="utf-8")
    print(f"wrote {results.path(page.NAME)} and {page.PAGE}")


def _made(attempt: Attempt, name: str) -> dict[str, list[str]]:
    serving = broker_process if name == NAMES[0] else rabbitmq
    with serving(tls=attempt.tls, most=attempt.descriptors) as target:
        rows = attempt.make(target)
    for each, row in rows.items():
        print(f"{name}: {attempt.name}: {each}: {row.happened} ({row.figures})", flush=True)
    return {each: [row.happened, row.figures] for each, row in rows.items()}


main()
