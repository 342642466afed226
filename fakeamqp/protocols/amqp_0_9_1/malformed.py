"""Input that cannot be read: the errors, and the answers to them.

The code that meets malformed input raises a `Malformed`: a sentence that explains what is wrong, and the
bytes that are wrong. The trace and the log get both. What the client gets is up to the personality: the
sentence, or what RabbitMQ sends. RabbitMQ prints the bytes as an Erlang term, or one of its processes crashes
on them: that of a channel, which is 541 without a text, or that of the connection, which closes the socket
(measured on 3.10, 4.0.5 and 4.3.6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from fakeamqp.model.erlang import Atom, Latin1, octets_term, pretty
from fakeamqp.model.errors import ChannelCrash
from fakeamqp.protocols.amqp_0_9_1.codec.record import fits
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.base.codec import WireError

Reason: TypeAlias = "Atom | tuple[Atom | int, ...]"

UNKNOWN_FRAME = Atom("unknown_frame")
_SHOWN = 16
_SHOWN_IN_TRACE = 64
_SECRETS = frozenset((10 << 16 | 11, 10 << 16 | 21, 10 << 16 | 70))
"""The methods with credentials: connection.start-ok, secure-ok and update-secret."""


class Malformed(ProtocolError):
    """Input that cannot be read.

    `octets` are the bytes that cannot be read: the payload of the frame, without its beginning in subclasses
    that say so.
    """

    def __init__(self, condition: str, text: str, octets: bytes, *, silent: bool = False) -> None:
        super().__init__(condition, text, silent=silent)
        self.octets = octets

    loses_frames = False
    """True if it is not known where the next frame begins."""
    is_secret = False
    """True if the bytes may be credentials."""

    def describe(self, number: int) -> str:
        """The explanation and the bytes, for the trace and the log; `number` is the channel's."""
        if self.is_secret:
            return f"{self.text} (channel {number}, {len(self.octets)} bytes with credentials)"
        more = f" and {len(self.octets) - _SHOWN_IN_TRACE} more" if len(self.octets) > _SHOWN_IN_TRACE else ""
        shown = self.octets[:_SHOWN_IN_TRACE].hex(" ") or "none"
        return f"{self.text} (channel {number}, bytes: {shown}{more})"


class MalformedFrame(Malformed):
    """A frame that is no frame, or that must not come now.

    `reason` is what is wrong with it in RabbitMQ's words; None for a frame that must not come now.
    """

    def __init__(
        self,
        condition: str,
        text: str,
        frame_type: int,
        octets: bytes,
        reason: Reason | None = None,
        *,
        silent: bool = False,
        loses_frames: bool = False,
    ) -> None:
        super().__init__(condition, text, octets, silent=silent)
        self.frame_type = frame_type
        self.reason = reason
        self.is_secret: bool = int.from_bytes(octets[:4], "big") in _SECRETS
        self.loses_frames = loses_frames


class UnknownMethod(Malformed):
    """A method with ids that no method has."""


class MalformedMethod(Malformed):
    """A method whose fields cannot be read. `octets` are those behind its ids."""

    def __init__(self, method: type[Method], payload: bytes, problem: WireError) -> None:
        super().__init__(problem.condition, str(problem), payload[4:])
        self.is_secret: bool = method.INDEX in _SECRETS
        self.fits: bool = fits(method.FIELDS, payload, 4)
        """True if the fields have the right lengths: the problem is inside a table."""


class MalformedContent(Malformed):
    """A content header whose properties cannot be read. `octets` are those of the properties."""

    def __init__(self, octets: bytes, problem: WireError) -> None:
        super().__init__(problem.condition, str(problem), octets)


def answer_to(
    problem: Malformed, number: int, personality: Personality
) -> ProtocolError | ChannelCrash | None:
    """What the client gets for malformed input on the channel of this number.

    None stands for the end of the transport, at once and in any state of the connection.
    """
    if personality.explains_malformed_input:
        return problem
    if isinstance(problem, MalformedFrame):
        return ProtocolError(problem.condition, _frame_text(problem, latin_1=not personality.prints_utf8))
    if isinstance(problem, MalformedContent) or (isinstance(problem, MalformedMethod) and number == 0):
        return ChannelCrash(problem.text)
    if isinstance(problem, MalformedMethod) and not problem.fits:
        return _cannot_decode(problem.octets)
    if isinstance(problem, UnknownMethod) and number:
        return _answer_to_unused(problem.octets)
    return None


_UNUSED_METHODS = {60 << 16 | 200: (True, 5), 60 << 16 | 201: (False, 4), 60 << 16 | 202: (True, 4)}
"""basic.credit, credit-ok and credit-drained: RabbitMQ reads these methods, and takes none from a client
(measured on 4.0.5 and 4.3.6). Index -> whether a consumer tag comes first, and the bytes behind it."""


def _answer_to_unused(payload: bytes) -> ProtocolError | None:
    """The answer to a method that RabbitMQ knows and has no use for; None if it is another."""
    index, fields = int.from_bytes(payload[:4], "big"), payload[4:]
    if index not in _UNUSED_METHODS:
        return None
    has_tag, size = _UNUSED_METHODS[index]
    if has_tag:
        size += 1 + (fields[0] if fields else 0)
    if len(fields) != size:
        return _cannot_decode(fields)
    return ProtocolError("command-invalid", "unimplemented method")


def _cannot_decode(octets: bytes) -> ProtocolError:
    return ProtocolError("frame-error", f"cannot decode {octets_term(octets)}")


def _frame_text(problem: MalformedFrame, *, latin_1: bool) -> str:
    octets = problem.octets
    text = f"type {problem.frame_type}, {'all' if len(octets) <= _SHOWN else f'first {_SHOWN}'} octets = "
    shown = octets[:_SHOWN]
    text += pretty(Latin1(shown) if latin_1 else shown, text)
    if problem.reason is not None:
        text += ": "
        text += pretty(problem.reason, text)
    return text
