"""All errors of fakeamqp, those of Spark excepted, which are in `fakeamqp.spark`.

Every package may import this module: it defines the base classes, and imports the others on first use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fakeamqp.lazy import on_first_use

if TYPE_CHECKING:
    from fakeamqp.broker import (
        BadBody as BadBody,
    )
    from fakeamqp.dialects import (
        UnknownProtocol as UnknownProtocol,
    )
    from fakeamqp.endpoint import (
        NotIdle as NotIdle,
    )
    from fakeamqp.faults.errors import (
        FaultError as FaultError,
        FaultNotSeen as FaultNotSeen,
        UnusedFault as UnusedFault,
    )
    from fakeamqp.inspect.errors import (
        BadExpectation as BadExpectation,
        NoHistory as NoHistory,
        NoSuchConsumer as NoSuchConsumer,
        NoSuchExchange as NoSuchExchange,
        NoSuchQueue as NoSuchQueue,
        NoSuchVirtualHost as NoSuchVirtualHost,
        NotAsExpected as NotAsExpected,
        NotDeadLettered as NotDeadLettered,
        NotDropped as NotDropped,
        NotPublished as NotPublished,
        NotReturned as NotReturned,
    )
    from fakeamqp.management.errors import (
        ManagementError as ManagementError,
    )
    from fakeamqp.model.access import (
        AccountError as AccountError,
        BadPasswordHash as BadPasswordHash,
    )
    from fakeamqp.model.definitions import (
        DefinitionsError as DefinitionsError,
    )
    from fakeamqp.model.errors import (
        AccessRefused as AccessRefused,
        AuthenticationFailed as AuthenticationFailed,
        CommandInvalid as CommandInvalid,
        ContentTooLarge as ContentTooLarge,
        IllegalArgument as IllegalArgument,
        IllegalState as IllegalState,
        InternalError as InternalError,
        InvalidArgument as InvalidArgument,
        InvalidPath as InvalidPath,
        ModelError as ModelError,
        NotAllowed as NotAllowed,
        NotFound as NotFound,
        NotImplementedHere as NotImplementedHere,
        PreconditionFailed as PreconditionFailed,
        ResourceDeleted as ResourceDeleted,
        ResourceError as ResourceError,
        ResourceLocked as ResourceLocked,
        SyntaxFault as SyntaxFault,
    )
    from fakeamqp.model.limits import (
        BoundsError as BoundsError,
        LimitsError as LimitsError,
    )
    from fakeamqp.model.messages.message import (
        UnknownProperty as UnknownProperty,
    )
    from fakeamqp.model.patterns import (
        InvalidPattern as InvalidPattern,
    )
    from fakeamqp.model.personality import (
        FeatureError as FeatureError,
        UnknownPersonality as UnknownPersonality,
    )
    from fakeamqp.model.personality.variants import (
        UnknownChoice as UnknownChoice,
    )
    from fakeamqp.model.policies import (
        ParameterError as ParameterError,
        PolicyError as PolicyError,
    )
    from fakeamqp.portable.routes import (
        BadQueue as BadQueue,
        NoAnswer as NoAnswer,
        RequestRefused as RequestRefused,
    )
    from fakeamqp.protocols.base.codec import (
        FieldError as FieldError,
        FieldNameError as FieldNameError,
        FrameError as FrameError,
        WireError as WireError,
    )
    from fakeamqp.protocols.registry import (
        BadAbsence as BadAbsence,
    )
    from fakeamqp.replay.player import (
        NotTheSame as NotTheSame,
    )
    from fakeamqp.replay.target import (
        NoBroker as NoBroker,
        ReplayError as ReplayError,
    )
    from fakeamqp.runtime.errors import (
        BadCertificate as BadCertificate,
        CannotListen as CannotListen,
        ClockError as ClockError,
        EngineError as EngineError,
        InterceptError as InterceptError,
        NothingPending as NothingPending,
        PortInUse as PortInUse,
        TLSUnavailable as TLSUnavailable,
    )
    from fakeamqp.services import (
        BadRegistration as BadRegistration,
    )
    from fakeamqp.simulation.errors import (
        Deadlock as Deadlock,
        NotSimulated as NotSimulated,
        SimulationError as SimulationError,
        TimeLimit as TimeLimit,
        UnknownHost as UnknownHost,
    )
    from fakeamqp.simulation.exploring import (
        FailingSchedule as FailingSchedule,
    )
    from fakeamqp.trace.checks.finding import (
        CheckFailed as CheckFailed,
        TraceIncomplete as TraceIncomplete,
        UnknownCheck as UnknownCheck,
        UnknownRule as UnknownRule,
    )
    from fakeamqp.trace.json_lines import (
        RecordingError as RecordingError,
    )
    from fakeamqp.trace.parquet import (
        PyarrowMissing as PyarrowMissing,
    )
else:
    __getattr__, __dir__ = on_first_use(
        __name__, ("BrokerError", "FakeAMQPError", "ManagementUnavailable", "UnreadResult", "WaitTimeout")
    )


class FakeAMQPError(Exception):
    """Base class of all errors that fakeamqp raises on purpose; the text says what to do."""

    __module__ = "fakeamqp"


class BrokerError(FakeAMQPError):
    """The broker cannot do this in its present state, or an argument is invalid; the text says what to do."""

    __module__ = "fakeamqp"


class WaitTimeout(FakeAMQPError, AssertionError):
    """A wait timed out; the text shows what the broker holds, and the latest events."""

    __module__ = "fakeamqp"


class ManagementUnavailable(FakeAMQPError):
    """The packages that the HTTP API needs are not installed."""

    __module__ = "fakeamqp.errors"


class UnreadResult(UserWarning):
    """A result with a failure was dropped unread, so the test has not checked it."""

    __module__ = "fakeamqp.errors"


unread_results: list[str] = []
"""The failures of results that were dropped unread, since the current test began."""


class Result:
    """A result that must be read if it tells of a failure. Each access to a public attribute reads it.

    Dropped unread, it warns with `UnreadResult`; the pytest plugin fails the test.
    """

    _is_read = False

    def _failure(self) -> str:
        """The failure, and what to do with the result; "" without one."""
        raise NotImplementedError

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            object.__setattr__(self, "_is_read", True)
        return object.__getattribute__(self, name)

    def __del__(self) -> None:
        if not self._is_read and (failure := self._failure()):
            import warnings

            unread_results.append(failure)
            warnings.warn(failure, UnreadResult, stacklevel=2)


def troubleshooting(section: str) -> str:
    """A line that names the section of the documentation about a symptom."""
    return f"see https://fakeamqp.readthedocs.io/troubleshooting/#{section}"


def check_timeout(timeout: object) -> None:
    """Raise BrokerError if the timeout of a wait is not a number of seconds."""
    # All comparisons with NaN are false.
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout >= 0:
        raise BrokerError(f"timeout={timeout!r} must be a number of seconds, 0 or more")


def printable(text: str) -> str:
    """The text for a log or a terminal: escape sequences that a peer has put into it do nothing."""
    return text if text.isprintable() else repr(text)[1:-1]


def without_login(url: str) -> str:
    """A URL, or what was to be one, for a text that others read: `***` in the place of user and password."""
    scheme, _, rest = url.rpartition("//")
    _, at, address = rest.rpartition("@")
    return f"{scheme}//***@{address}" if at and scheme else f"***@{address}" if at else url


def nearest(name: object, known: Iterable[str]) -> list[str]:
    """The known name that a misspelled one resembles most, in a list; [] if there is none."""
    import difflib  # Imported only for errors.

    return difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.6)


def near_match(name: object, known: Iterable[str], most: int = 12) -> str:
    """The end of an error about an unknown name: the nearest known name, or up to `most` known names."""
    names = sorted(known)
    near = nearest(name, names)
    if near:
        return f"; did you mean {near[0]!r}?"
    if not 0 < len(names) <= most:
        return ""
    return f"; there {'are' if len(names) > 1 else 'is only'} {', '.join(map(repr, names))}"
