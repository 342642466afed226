"""Reply codes and texts of closes that faults make."""

from __future__ import annotations

from fakeamqp.faults.errors import FaultError
from fakeamqp.wire.amqp_0_9_1.constants import REPLY_NAMES

__all__ = ["reply_text"]


def reply_text(code: int, text: str | None) -> str:
    """The reply text: as said, or the code's name and what is behind it.

    Raises:
        FaultError: no frame can carry the code, or the text is none.
    """
    if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code <= 0xFFFF:
        raise FaultError(f"a reply code is a number from 0 to 65535, such as 404, not {code!r}")
    if text is not None:
        if not isinstance(text, str):
            raise FaultError(f"a reply text is a str, not {text!r}")
        return text
    name = REPLY_NAMES.get(code)
    return f"{name} - a fault that the test asked for" if name else "a fault that the test asked for"
