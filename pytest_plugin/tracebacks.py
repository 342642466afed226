"""Tracebacks of errors that fakeamqp raises on purpose, and of Spark: they end at the line of the test."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from fakeamqp import errors

if TYPE_CHECKING:
    import pytest

__all__ = ["shorten", "text_instead", "with_cause_first"]

_OURS = (Path(errors.__file__).parent, Path(__file__).parent)
_STANDARD = (Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("platstdlib")))
_RUNNERS = {"_pytest", "pluggy", "pytest_asyncio", "anyio"}
_SPARK = {"pyspark", "py4j"}


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

    if excinfo is None:
        return excinfo
    _shorten_causes(excinfo.value)
    if not (isinstance(excinfo.value, errors.FakeAMQPError) or _cause(excinfo.value)):
        return excinfo
    shown = _linked(excinfo)
    if shown is None:
        return excinfo
    return pytest.ExceptionInfo.from_exc_info((excinfo.type, excinfo.value, shown))


def _shorten_causes(error: BaseException) -> None:
    """Do the same to what has led to an error, and leave out what has happened in fakeamqp alone."""
    import pytest

    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is None or cause.__traceback__ is None:
            return
        shown = _linked(pytest.ExceptionInfo.from_exception(cause))
        ours = isinstance(error, errors.FakeAMQPError)
        if ours and shown is None:
            error.__cause__ = None  # Its text is part of that of the error.
            return
        if ours or isinstance(cause, errors.FakeAMQPError):
            cause.__traceback__ = shown or cause.__traceback__
        error = cause


def _linked(excinfo: pytest.ExceptionInfo[BaseException]) -> TracebackType | None:
    """The traceback without frames of ours, of Spark and of what they have called; None if none is left."""
    entries = list(excinfo.traceback)
    last = max((number for number, each in enumerate(entries) if _of_the_test(each)), default=-1)
    shown = None
    for each in reversed(entries[: last + 1]):
        if not (_within(each, _OURS) or set(Path(each.path).parts) & _SPARK):
            raw = each._rawentry
            shown = TracebackType(shown, raw.tb_frame, raw.tb_lasti, raw.tb_lineno)
    return shown


def text_instead(call: pytest.CallInfo[None]) -> str:
    """The text to report instead of a traceback without a line of the test, as if a fixture fails; or ""."""
    excinfo = call.excinfo
    if excinfo is None or not isinstance(excinfo.value, errors.FakeAMQPError):
        return ""
    if any(_of_the_test(each) for each in excinfo.traceback):
        return ""
    kind = type(excinfo.value)
    return f"{kind.__module__}.{kind.__qualname__}: {excinfo.value}"


def with_cause_first(report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
    """Begin the text of an error of Spark with its cause, and leave out the stack traces around it."""
    shown: Any = report.longrepr
    if call.excinfo is None or not hasattr(shown, "reprcrash"):
        return
    error = call.excinfo.value
    cause = _cause(error)
    if not cause:
        return
    entry, kind = shown.reprtraceback.reprentries[-1], type(error).__name__
    kept = [line for line in entry.lines if not line.startswith("E ")]
    whole = f"({kind} of Spark; --full-trace shows all of it)"
    entry.lines[:] = [*kept, *(f"E   {line}" for line in (*cause.splitlines(), whole))]
    if shown.reprcrash is not None:
        shown.reprcrash.message = cause


def _cause(error: BaseException) -> str:
    if not type(error).__module__.startswith(tuple(_SPARK)):
        return ""
    try:
        from fakeamqp.spark.causes import cause_of
    except ImportError:  # Not on Windows.
        return ""
    return cause_of(error)


def _of_the_test(entry: Any) -> bool:
    """Whether a frame is neither ours nor of what runs tests."""
    path = Path(entry.path)
    if _within(entry, _OURS) or set(path.parts) & (_RUNNERS | _SPARK):
        return False
    return not _within(entry, _STANDARD) or "site-packages" in path.parts


def _within(entry: Any, folders: tuple[Path, ...]) -> bool:
    return any(Path(entry.path).is_relative_to(folder) for folder in folders)
