"""Runs tests by Twisted's runner in this process: the client's own suite, or ours that use the client.

    python trial_run.py HOST PORT PROFILE NAME...

`PROFILE` is what the suite's base class goes by: which broker it talks to. The suite looks for definitions of
the protocol in `../specs`. After all that the tests print themselves there is a line of JSON for each.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

DEFINITION = "../specs/standard/amqp0-9.stripped.xml"


def main(host: str, port: int, profile: str, names: list[str]) -> None:
    os.environ["TXAMQP_BROKER"] = profile  # Decorators of the suite read it when they are imported.
    import txamqp.spec

    txamqp.spec.DEFAULT_SPEC = DEFINITION  # Else it is looked for beside the installed package.
    from twisted.trial import reporter, runner

    from txamqp.testlib import TestBase

    made = TestBase.__init__

    def on_our_broker(self: Any, *arguments: Any, **named: Any) -> None:
        made(self, *arguments, **named)
        self.host, self.port = host, port

    TestBase.__init__ = on_our_broker

    class Outcomes(reporter.TestResult):
        """Says how each test went."""

        def __init__(self) -> None:
            super().__init__()
            self.of: dict[str, tuple[str, str]] = {}

        def stopTest(self, test: Any) -> None:
            super().stopTest(test)
            self.of.setdefault(test.id(), ("pass", ""))

        def addSkip(self, test: Any, reason: Any) -> None:
            super().addSkip(test, reason)
            self.of[test.id()] = ("skip", str(reason))

        def addFailure(self, test: Any, failure: Any) -> None:
            super().addFailure(test, failure)
            report = self.of.get(test.id(), ("", ""))[1]
            self.of[test.id()] = ("fail", report + self._getFailure(failure).getTraceback())

        addError = addFailure

    loader = runner.TestLoader()
    outcomes = Outcomes()
    runner.TrialSuite([loader.loadByName(name, recurse=True) for name in names]).run(outcomes)
    for name, (status, report) in outcomes.of.items():
        print("\n" + json.dumps({"test": name, "status": status, "report": report}))


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[3])  # Instead of this file's folder.
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:])
