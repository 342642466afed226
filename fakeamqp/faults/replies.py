"""Reply codes and reply texts of closes by faults."""

from __future__ import annotations

from fakeamqp.dialects import default_protocol, dialect_named, protocols_with
from fakeamqp.errors import near_match
from fakeamqp.faults.errors import FaultError

__all__ = ["error_code", "reply_text"]


def reply_text(code: int, text: str | None, name: str | None = None) -> str:
    """The reply text: `text`, or by default the name of the code and that a test asked for the fault.

    Raises:
        FaultError: the code does not fit its field, or the text is not a str.
    """
    if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code <= 0xFFFF:
        raise FaultError(f"a reply code is a number from 0 to 65535, such as 404, not {code!r}")
    if text is not None:
        if not isinstance(text, str):
            raise FaultError(f"a reply text is a str, not {text!r}")
        return text
    name = name or default_protocol().dialect.reply_names.get(code)
    return f"{name} - a fault that the test asked for" if name else "a fault that the test asked for"


def error_code(code: int | str) -> tuple[int, str | None]:
    """An error code of a protocol with sessions and its name, found by either; unknown numbers have no name.

    Raises:
        FaultError: there is no such name.
    """
    names = {
        name: number
        for protocol in protocols_with("sessions")
        for number, name in dialect_named(protocol).reply_names.items()
    }
    if isinstance(code, str):
        if code not in names:
            raise FaultError(f"there is no error code {code!r}{near_match(code, names)}")
        return names[code], code
    return code, next((name for name, number in names.items() if number == code), None)
