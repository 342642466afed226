"""Who waits for what: the texts of errors about simulations that do not go on."""

from __future__ import annotations

import asyncio
import linecache
import os
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakeamqp.simulation.loop import SimulatedLoop

_ASYNCIO = os.path.dirname(asyncio.__file__) + os.sep
# How many tasks a text lists.
_MOST_TASKS = 20


def deadlock_text(loop: SimulatedLoop) -> str:
    """The text of a deadlock."""
    text = (
        f"deadlock after {loop.time():.6g} simulated seconds: nothing is ready, no timer is set and nothing "
        f"is under way, so these tasks wait for ever:\n{describe_tasks(loop)}"
    )
    threads = loop._other_threads()
    if threads:
        names = ", ".join(thread.name for thread in threads)
        text += (
            f"\nOther threads run ({names}). A simulation only waits for functions in threads that "
            f"asyncio.to_thread or loop.run_in_executor has started."
        )
    return text


def limit_text(loop: SimulatedLoop, limit: float) -> str:
    """The text about a limit of time."""
    return (
        f"the simulation is not over after {limit:g} simulated seconds; if it only takes that long, raise "
        f"the limit (limit=...). These tasks wait:\n{describe_tasks(loop)}"
    )


def describe_tasks(loop: asyncio.AbstractEventLoop) -> str:
    """The unfinished tasks of a loop in the order of their creation: where they are, what they wait for."""
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: getattr(task, "number", 0))
    lines: list[str] = []
    for task in tasks[:_MOST_TASKS]:
        lines += _describe(task)
    if len(tasks) > _MOST_TASKS:
        lines.append(f"  and {len(tasks) - _MOST_TASKS} more tasks")
    return "\n".join(lines) or "  (there is no unfinished task)"


def _describe(task: asyncio.Task[Any]) -> list[str]:
    coroutine = task.get_coro()
    function = getattr(coroutine, "__qualname__", None) or repr(coroutine)
    frames = list(frames_of(coroutine))
    own = [frame for frame in frames if not frame.f_code.co_filename.startswith(_ASYNCIO)]
    lines = [f"  {task.get_name()} ({function}) waits for {_awaited(task, frames)}"]
    for frame in own or frames[:1]:
        code = frame.f_code
        source = linecache.getline(code.co_filename, frame.f_lineno).strip()
        lines.append(
            f"    {code.co_filename}:{frame.f_lineno} in {code.co_name}{': ' if source else ''}{source}"
        )
    return lines


def frames_of(coroutine: Any) -> Iterator[FrameType]:
    """The frames of a coroutine and of what it awaits, from the outermost inwards."""
    while coroutine is not None:
        for prefix, awaited in (("cr", "await"), ("gi", "yieldfrom"), ("ag", "await")):
            if hasattr(coroutine, f"{prefix}_frame"):
                frame = getattr(coroutine, f"{prefix}_frame")
                if frame is not None:
                    yield frame
                coroutine = getattr(coroutine, f"{prefix}_{awaited}")
                break
        else:
            return


def _awaited(task: asyncio.Task[Any], frames: list[FrameType]) -> str:
    """What a task waits for, in words."""
    if frames and frames[-1].f_code.co_filename.startswith(_ASYNCIO):
        inner = frames[-1]
        for frame in reversed(frames):
            if not frame.f_code.co_filename.startswith(_ASYNCIO):
                break
            if not frame.f_code.co_name.startswith("__"):
                inner = frame
        owner = inner.f_locals.get("self")
        name = inner.f_code.co_name
        return f"{type(owner).__name__}.{name}()" if owner is not None else f"asyncio.{name}()"
    awaited = getattr(task, "_fut_waiter", None)
    if isinstance(awaited, asyncio.Task):
        return f"the task {awaited.get_name()}"
    children = getattr(awaited, "_children", None)
    if children:
        waiting = [child for child in children if not child.done()]
        names = [child.get_name() if isinstance(child, asyncio.Task) else "a future" for child in waiting]
        return f"asyncio.gather() of {', '.join(names)}"
    if awaited is None:
        return "nothing: it is ready"
    return "a future that nothing has set"
