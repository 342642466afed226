"""How the client proves who it is: RFC 4616 (PLAIN), 4505 (ANONYMOUS), 4422 (EXTERNAL), 2195 (CRAM-MD5)."""

from __future__ import annotations

import hmac

__all__ = ["answer", "begin"]


def begin(mechanism: str, user: str, password: str) -> bytes | None:
    """What goes with the choice of the mechanism; nothing where the broker speaks first."""
    return {
        "PLAIN": f"\0{user}\0{password}".encode(),
        "ANONYMOUS": user.encode(),
        "EXTERNAL": b"",
    }.get(mechanism)


def answer(mechanism: str, challenge: bytes, user: str, password: str) -> bytes:
    """The answer to a challenge."""
    if mechanism != "CRAM-MD5":
        return b""
    digest = hmac.new(password.encode(), challenge, "md5").hexdigest()
    return f"{user} {digest}".encode()
