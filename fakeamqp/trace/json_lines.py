"""Recordings: a trace as a file of JSON Lines.

The first line describes the recording: `format`, `version`, `clock` ("real", "virtual" or "wall"), `began`
(the wall time of instant 0, in seconds since 1970, or null), `dropped` (the number of earlier events that are
not in the file), `events` (the number that are) and `redacted` (true if passwords were replaced). Each
further line is an event as `event_to_json` returns it, with its `number`: its position in the trace, from 0.
A frame also has its payload in base64 as `octets`; `read` decodes the frame from that.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from fakeamqp.adapters import default_protocol
from fakeamqp.trace.errors import RecordingError
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent, ModelEvent
from fakeamqp.trace.json_form import event_to_json
from fakeamqp.trace.loaded_values import value_from_json
from fakeamqp.trace.truncation import Truncated

if TYPE_CHECKING:
    import os

    from fakeamqp.trace.timeline import Trace

__all__ = ["FORMAT", "VERSION", "read", "write"]

FORMAT = "fakeamqp trace"
VERSION = 1
"""Increases when a reader of the previous version could not read a new recording."""


def write(trace: Trace, path: str | os.PathLike[str], *, redact: bool) -> None:
    """Write `trace`; see `Trace.jsonl`."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "clock": trace.clock,
        "began": trace.wall_time,
        "dropped": trace.dropped,
        "events": len(trace),
        "redacted": redact,
    }
    with open(path, "w", encoding="ascii", newline="\n") as file:
        file.write(json.dumps(header) + "\n")
        for number, event in enumerate(trace.events):
            file.write(json.dumps(_line(number, event, redact), separators=(",", ":")) + "\n")


def _line(number: int, event: Event, redact: bool) -> dict[str, Any]:
    said = {"number": number, **event_to_json(event)}
    if isinstance(event, FrameEvent):
        octets = event.redacted.payload if redact else event.payload
        said["octets"] = base64.b64encode(octets).decode()
    return said


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[Event]]:
    """The first line of a recording, and its events.

    Raises:
        RecordingError: the file is not a recording, or a line is damaged; the text names the line.
        OSError: the file cannot be opened.
    """
    header: dict[str, Any] = {}
    events = []
    number = 0
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        try:
            for number, line in enumerate(file, 1):
                if number == 1:
                    header = _header(line)
                else:
                    events.append(_event(json.loads(line)))
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as problem:
            reason = f"{type(problem).__name__}: {problem}"
            raise RecordingError(f"{path}: line {max(1, number)} is damaged ({reason:.200})") from problem
        except RecordingError as problem:
            raise RecordingError(f"{path}: {problem}") from None
    if not header:
        raise RecordingError(f"{path}: the file is empty, so it is not a recording")
    if header["events"] != len(events):
        raise RecordingError(f"{path}: {header['events']} events are expected and {len(events)} were found")
    return header, events


def _header(line: str) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        said = None
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise RecordingError("this is not a recording of fakeamqp: the first line is not its header")
    if said.get("version") != VERSION:
        raise RecordingError(f"the recording has version {said.get('version')!r}; only {VERSION} can be read")
    return {name: said[name] for name in ("clock", "began", "dropped", "events", "redacted")}


def _event(said: dict[str, Any]) -> Event:
    where = (float(said["time"]), said["connection"], said["alias"])
    kind = said["kind"]
    if kind == "frame":
        payload = base64.b64decode(said["octets"])
        if said["cut"]:
            payload = Truncated.of(payload, said["size"])
        return FrameEvent(
            *where,
            said["direction"],
            said["type"],
            said["channel"],
            payload,
            said.get("protocol", default_protocol().name),
        )
    if kind == "connection":
        return ConnectionEvent(*where, said["event"], said["detail"])
    if kind == "model":
        return ModelEvent(
            *where, said["event"], {name: value_from_json(each) for name, each in said["facts"].items()}
        )
    raise ValueError(f"there is no event of kind {kind!r}")
