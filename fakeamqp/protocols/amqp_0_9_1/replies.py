"""Map an error to the reply sent to the peer: reply code, text, scope.

Errors of model and codec name a condition; a protocol's `Replies` maps it to a code.
`Amqp091Connection._fail` adds the ids of the failing method, in the one place that turns exceptions into
close methods.
"""

from __future__ import annotations

from collections.abc import Mapping

from fakeamqp.errors import FakeAMQPError
from fakeamqp.model.errors import ChannelCrash, ModelError
from fakeamqp.protocols.amqp_0_9_1.codec.constants import HARD_ERRORS, REPLY_NAMES
from fakeamqp.protocols.base.codec import WireError


class ProtocolError(FakeAMQPError):
    """The peer violated the protocol. `condition` names the reply code.

    With `silent` the broker closes the transport without a close method, as the specification demands for
    broken framing. `ends_connection` overrides the default scope of the reply code.
    """

    def __init__(
        self, condition: str, text: str, *, silent: bool = False, ends_connection: bool | None = None
    ) -> None:
        super().__init__(text)
        self.condition = condition
        self.text = text
        self.silent = silent
        self.ends_connection = ends_connection


class CloseReply:
    """The content of a close method. `text` starts with the name of the code, as RabbitMQ writes it."""

    __slots__ = ("code", "ends_connection", "names_no_method", "silent", "text")

    def __init__(self, code: int, text: str, ends_connection: bool, silent: bool = False) -> None:
        self.code: int = code
        self.text: str = text
        self.ends_connection: bool = ends_connection
        self.silent: bool = silent
        self.names_no_method: bool = False


class Replies:
    """The reply codes of one protocol, with their names in texts, such as "NOT_FOUND".

    `hard` are the codes that close the connection; the others close the channel. `fallbacks` maps conditions
    without a code in this protocol to the condition whose code is used.
    """

    __slots__ = ("_codes", "_hard", "_names")

    def __init__(
        self, names: Mapping[int, str], hard: frozenset[int], fallbacks: Mapping[str, str] | None = None
    ) -> None:
        self._names = names
        self._hard = hard
        self._codes = {name.lower().replace("_", "-"): code for code, name in names.items()}
        for condition, other in (fallbacks or {}).items():
            self._codes[condition] = self._codes[other]

    def code(self, condition: str) -> int:
        """Return the code of a condition.

        Raises:
            KeyError: the protocol has no code for it.
        """
        return self._codes[condition]

    def reply_for(self, error: ProtocolError | ModelError | WireError) -> CloseReply:
        """Return the reply for an error."""
        code = self._codes[error.condition]
        ends_connection = code in self._hard
        if not isinstance(error, WireError) and error.ends_connection is not None:
            ends_connection = error.ends_connection
        silent = isinstance(error, ProtocolError) and error.silent
        name = self._names[code]
        crash = isinstance(error, ChannelCrash)
        text = name if crash or not str(error) else f"{name} - {error}"
        reply = CloseReply(code, short_text(text), ends_connection, silent)
        reply.names_no_method = crash
        return reply


def stripped(name: str) -> str:
    """Return a name without line breaks, as declare, bind and delete use it (RabbitMQ: measured)."""
    return name.replace("\r", "").replace("\n", "")


def short_text(text: str) -> str:
    """Return `text`, cut to the 255 bytes of a short string."""
    octets = text.encode("utf-8", "surrogateescape")
    if len(octets) <= 255:
        return text
    return octets[:252].decode("utf-8", "ignore") + "..."


REPLIES = Replies(REPLY_NAMES, HARD_ERRORS)
"""Those of 0-9-1."""
