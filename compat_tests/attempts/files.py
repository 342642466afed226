"""Files made to harm: definitions, and recordings of traces."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from compat_tests.attempts.attempt import Row, attempt
from compat_tests.attempts.targets import Target

_PATHS = (
    "../../../../tmp/owned",
    "/etc/passwd",
    "C:\\owned",
    "a\0b",
    "con",
    "~root",
    "$(touch owned)",
    "%n%s",
)
_MEGABYTES = 700
"""What a command that reads a file may take: the address space of a process that has imported everything."""


def _queues(*queues: dict[str, Any]) -> dict[str, Any]:
    return {
        "queues": [{"vhost": "/", "durable": True, "auto_delete": False, "arguments": {}} | q for q in queues]
    }


def _policy(pattern: str) -> dict[str, Any]:
    policy = {"vhost": "/", "name": "p", "pattern": pattern, "apply-to": "all", "priority": 0}
    return {"policies": [{**policy, "definition": {"max-length": 1}}]}


def _nested(depth: int) -> str:
    return '{"queues": ' + "[" * depth + "]" * depth + "}"


DEFINITIONS: dict[str, str] = {
    "not JSON": "{",
    "not an object": "[]",
    "lists 100 000 deep": _nested(100_000),
    "a number of 100 000 digits": '{"queues": ' + "9" * 100_000 + "}",
    "a float above the largest": '{"policies": [{"vhost": "/", "name": "p", "pattern": "", "definition": '
    '{"max-length": 1e999}}]}',
    "NaN": '{"policies": [{"vhost": "/", "name": "p", "pattern": "", "definition": {"max-length": NaN}}]}',
    "a lone surrogate as a name": json.dumps(_queues({"name": "\ud800"})),
    "names that are paths and commands": json.dumps(_queues(*({"name": name} for name in _PATHS))),
    "a name of 300 bytes": json.dumps(_queues({"name": "x" * 300})),
    "the same queue 1 000 times": json.dumps(_queues(*[{"name": "q"}] * 1000)),
    "20 000 queues": json.dumps(_queues(*({"name": f"q{number}"} for number in range(20_000)))),
    "a queue in no virtual host": json.dumps(_queues({"name": "q", "vhost": "missing"})),
    "a policy of (a+)+$": json.dumps({**_policy("^(a+)+$"), **_queues({"name": "a" * 60 + "!"})}),
    "a policy of lookaheads in each other": json.dumps(
        {**_policy("^(?=.*(?=.*(?=.*(?=.*x))))"), **_queues({"name": "a" * 200})}
    ),
    "a policy of a back reference": json.dumps({**_policy(r"(.*)\1\1x"), **_queues({"name": "a" * 255})}),
    "a policy of repeated counts": json.dumps(
        {**_policy("^((a{0,99}){0,99}){0,9}$"), **_queues({"name": "a" * 200 + "!"})}
    ),
    "a policy of a thousand brackets": json.dumps(_policy("(" * 1000 + ")" * 1000)),
    "16 MB of spaces": "{" + " " * 16_000_000 + "}",
}


@attempt("Definitions made to harm", long=True)
def definitions(target: Target) -> dict[str, Row]:
    """A definitions file is malformed, deep or large, or has names with a meaning for other programs.
    "Refused" is an error that names the fault; the broker is unchanged."""
    rows = {}
    for name, text in DEFINITIONS.items():
        start = time.monotonic()
        said = target.import_definitions(text)
        rows[name] = Row(_told(said), f"{time.monotonic() - start:.1f} s")
        target.serves()
    return rows


def _told(said: str) -> str:
    if said == "loaded":
        return "loaded"
    if "Traceback" in said:
        return f"crashed: {said.splitlines()[-1][:60]}"
    return "refused"


# --- recordings ------------------------------------------------------------------------------------------

_HEADER = {
    "format": "fakeamqp trace", "version": 1, "clock": "real", "began": 0.0, "dropped": 0, "events": 1,
    "redacted": True,
}  # fmt: skip
_FRAME = {
    "number": 0, "time": 0.0, "connection": "127.0.0.1:1 -> 127.0.0.1:2", "alias": "c1", "kind": "frame",
    "protocol": "0-9-1", "direction": "received", "type": 1, "channel": 1, "octets": "", "cut": False,
}  # fmt: skip


def _recording(*lines: dict[str, Any], **header: Any) -> str:
    first = {**_HEADER, "events": len(lines), **header}
    return "".join(json.dumps(line) + "\n" for line in (first, *lines))


_CONNECTED = {
    "number": 0, "time": 0.0, "connection": "a -> b", "alias": "c1", "kind": "connection",
    "event": "connected", "detail": "",
}  # fmt: skip
_BODY = {**_FRAME, "connection": "a -> b", "type": 3}
_FACTS = {**_CONNECTED, "kind": "model", "event": "published", "facts": {}}


def _deep_fact(depth: int) -> str:
    line = json.dumps({**_FACTS, "facts": {"x": "@"}}).replace('"@"', "[" * depth + "]" * depth)
    return _recording({}).splitlines()[0] + "\n" + line + "\n"


RECORDINGS: dict[str, str] = {
    "nothing": "",
    "not JSON": "\0" * 1000,
    "lists 100 000 deep": _deep_fact(100_000),
    "lists 900 deep": _deep_fact(900),
    "a billion events are promised": _recording(_CONNECTED, events=10**9),
    "a body with a false size of a terabyte": _recording(
        _CONNECTED, {**_BODY, "octets": "eHh4", "cut": True, "size": 10**12}
    ),
    "a channel of a hundred digits": _recording(_CONNECTED, {**_BODY, "channel": 10**100}),
    "an unknown type of frame": _recording(_CONNECTED, {**_BODY, "type": 10**6}),
    "a type of frame of another protocol": _recording(_CONNECTED, {**_BODY, "type": 40_000}),
    "an instant of 1e300 seconds": _recording(_CONNECTED, {**_BODY, "time": 1e300}),
    "NaN as an instant": _recording(_CONNECTED, {**_BODY, "time": float("nan")}),
    "infinity as an instant": _recording(_CONNECTED, {**_BODY, "time": float("inf")}),
    "an instant before the first": _recording(_CONNECTED, {**_BODY, "time": -1e18}),
    "a beginning in the year 10 000 000": _recording(_CONNECTED, _BODY, began=3e14),
    "bytes that are not base64": _recording(_CONNECTED, {**_BODY, "octets": "\x1b]0;owned\x07"}),
    "names that are paths": _recording({**_CONNECTED, "connection": "../../owned", "alias": "/etc/passwd"}),
    "a line of 16 MB": _recording({**_CONNECTED, "detail": "x" * 16_000_000}),
    "a lone surrogate as a name": _recording({**_CONNECTED, "connection": "\ud800", "detail": "\udcff"}),
}
_RUN = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({_MEGABYTES} << 20, {_MEGABYTES} << 20))
from fakeamqp.cli import main
sys.exit(main(sys.argv[1:]))
"""


@attempt("Recordings made to harm", rabbitmq="it has no recordings", long=True)
def recordings(_: Target) -> dict[str, Row]:
    """`fakeamqp trace` in each format, and `fakeamqp replay`, read a recording that is malformed, deep or
    large, or has false figures of itself. The process may take 700 MB and 30 seconds."""
    rows = {}
    for name, text in RECORDINGS.items():
        ends = {}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "recording.jsonl")
            path.write_text(text, encoding="utf-8", errors="surrogatepass")
            for how, arguments in {
                "timeline": ["trace", str(path)],
                "html": ["trace", str(path), "--html", f"{folder}/out.html"],
                "pcapng": ["trace", str(path), "--pcapng", f"{folder}/out.pcapng"],
                "replay": ["replay", str(path), "--timeout", "1"],
            }.items():
                ends[how] = _end(arguments)
            assert {each.name for each in Path(folder).iterdir()} <= {
                "recording.jsonl", "out.html", "out.pcapng"
            }  # fmt: skip
        told = dict.fromkeys(ends.values())
        if len(told) > 1:
            told = {f"{how}: {end}": None for how, end in ends.items()}
        rows[name] = Row("; ".join(told))
    return rows


def _end(arguments: list[str]) -> str:
    try:
        done = subprocess.run(
            [sys.executable, "-c", _RUN, *arguments], capture_output=True, text=True, timeout=30, check=False
        )
    except subprocess.TimeoutExpired:
        return "no end"
    if "Traceback" in done.stderr or done.returncode < 0:
        return f"crashed: {(done.stderr.splitlines() or [''])[-1][:60]}"
    if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", done.stdout + done.stderr):
        return "control characters are printed"
    if done.returncode == 1 and not done.stderr:
        return "read, with differences"  # A replay.
    return "refused" if done.returncode else "read"
