"""Tracebacks of errors that fakeamqp raises on purpose: they end at the line of the test."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from fakeamqp import errors

if TYPE_CHECKING:
    import pytest

__all__ = ["shorten", "text_instead"]

_OURS = (Path(errors.__file__).parent, Path(__file__).parent)
_STANDARD = (Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("platstdlib")))
_RUNNERS = {"_pytest", "pluggy", "pytest_asyncio", "anyio"}


def shorten(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Take the frames of fakeamqp, and what they have called, out of the traceback of an expected error.

    Bugs of fakeamqp raise other errors, and keep their frames. pytest cuts tracebacks at raw entries, so that
    these have to be linked anew.
    """
    call.excinfo = _shortened(call.excinfo)
    kept = getattr(item, "_excinfo", None)  # unittest's cases keep their errors until the report is made.
    if kept:
        kept[:] = [_shortened(each) for each in kept]


def _shortened(excinfo: pytest.ExceptionInfo[BaseException] | None) -> Any:
    import pytest

    if excinfo is None or not isinstance(excinfo.value, errors.FakeAMQPError):
        return excinfo
    entries = list(excinfo.traceback)
    last = max((number for number, each in enumerate(entries) if _of_the_test(each)), default=-1)
    shown = None
    for each in reversed(entries[: last + 1]):
        if not _within(each, _OURS):
            raw = each._rawentry
            shown = TracebackType(shown, raw.tb_frame, raw.tb_lasti, raw.tb_lineno)
    if shown is None:
        return excinfo
    return pytest.ExceptionInfo.from_exc_info((excinfo.type, excinfo.value, shown))


def text_instead(call: pytest.CallInfo[None]) -> str:
    """The text to report instead of a traceback without a line of the test, as if a fixture fails; or ""."""
    excinfo = call.excinfo
    if excinfo is None or not isinstance(excinfo.value, errors.FakeAMQPError):
        return ""
    if any(_of_the_test(each) for each in excinfo.traceback):
        return ""
    kind = type(excinfo.value)
    return f"{kind.__module__}.{kind.__qualname__}: {excinfo.value}"


def _of_the_test(entry: Any) -> bool:
    """Whether a frame is neither ours nor of what runs tests."""
    path = Path(entry.path)
    if _within(entry, _OURS) or set(path.parts) & _RUNNERS:
        return False
    return not _within(entry, _STANDARD) or "site-packages" in path.parts


def _within(entry: Any, folders: tuple[Path, ...]) -> bool:
    return any(Path(entry.path).is_relative_to(folder) for folder in folders)
