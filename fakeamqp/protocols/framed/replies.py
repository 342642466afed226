"""From what went wrong to what the peer is told: reply code, text, scope.

Model and wire errors name a condition; a protocol's `Replies` makes a code of it. The ids of the failing
method are filled in by the endpoint, at the one place where exceptions turn into close methods.
"""

from __future__ import annotations

from collections.abc import Mapping

from fakeamqp.errors import FakeAMQPError
from fakeamqp.model.errors import Crash, ModelError
from fakeamqp.protocols.codec.errors import WireError

__all__ = ["ProtocolError", "Replies", "Reply", "short_text", "stripped"]


class ProtocolError(FakeAMQPError):
    """The peer broke the rules of the protocol itself. `condition` names the reply code.

    `silent` ends the transport without a word, which the documents demand for broken framing.
    `ends_connection` overrides the scope that the reply code has by default.
    """

    def __init__(
        self, condition: str, text: str, *, silent: bool = False, ends_connection: bool | None = None
    ) -> None:
        super().__init__(text)
        self.condition = condition
        self.text = text
        self.silent = silent
        self.ends_connection = ends_connection


class Reply:
    """What a close method says. `text` starts with the name of the code, as RabbitMQ writes it."""

    __slots__ = ("code", "ends_connection", "names_no_method", "silent", "text")

    def __init__(self, code: int, text: str, ends_connection: bool, silent: bool = False) -> None:
        self.code = code
        self.text = text
        self.ends_connection = ends_connection
        self.silent = silent
        self.names_no_method = False


class Replies:
    """The reply codes of one protocol.

    Args:
        names: what peers print for each code, as "NOT_FOUND".
        hard: the codes that end the connection; the others end the channel.
        fallbacks: condition -> the one whose code stands for it in a protocol that has none of its own.
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
        """The code of a condition.

        Raises:
            KeyError: the protocol has none for it.
        """
        return self._codes[condition]

    def reply_for(self, error: ProtocolError | ModelError | WireError) -> Reply:
        """The reply that tells a peer of this error."""
        code = self._codes[error.condition]
        ends_connection = code in self._hard
        if not isinstance(error, WireError) and error.ends_connection is not None:
            ends_connection = error.ends_connection
        silent = isinstance(error, ProtocolError) and error.silent
        name = self._names[code]
        crash = isinstance(error, Crash)
        text = name if crash or not str(error) else f"{name} - {error}"
        reply = Reply(code, short_text(text), ends_connection, silent)
        reply.names_no_method = crash
        return reply


def stripped(name: str) -> str:
    """A name as it is declared, bound and deleted: without line ends (RabbitMQ: measured)."""
    return name.replace("\r", "").replace("\n", "")


def short_text(text: str) -> str:
    """`text`, cut so that it fits a short string."""
    octets = text.encode("utf-8", "surrogateescape")
    if len(octets) <= 255:
        return text
    return octets[:252].decode("utf-8", "ignore") + "..."
