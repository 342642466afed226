"""Hashes of passwords as RabbitMQ exports them.

A hash is base64 of four bytes of salt, and of the digest of the salt and the password.
"""

from __future__ import annotations

from fakeamqp.errors import FakeAMQPError

__all__ = ["ALGORITHMS", "BadPasswordHash", "check_password_hash"]

ALGORITHMS = ("sha256", "sha512")
SALT = 4


class BadPasswordHash(FakeAMQPError, ValueError):
    """A password hash is not one; the text says what is wrong."""


def check_password_hash(password_hash: object) -> None:
    """Check a pair of algorithm and encoded hash.

    Raises:
        BadPasswordHash: it is no such pair, the algorithm is unknown, or the hash is not one of it.
    """
    import base64  # Imported for hashes only: they make importing `Broker` slower.
    import hashlib

    if not isinstance(password_hash, tuple) or [type(each) for each in password_hash] != [str, str]:
        raise BadPasswordHash("must be a pair of str, (algorithm, base64 of salt and digest)")
    algorithm, encoded = password_hash
    if algorithm not in ALGORITHMS:
        raise BadPasswordHash(f"must name one of the algorithms {', '.join(ALGORITHMS)}, not {algorithm!r}")
    expected = SALT + hashlib.new(algorithm).digest_size
    try:
        size = len(base64.b64decode(encoded, validate=True))
    except ValueError:
        size = None
    if size != expected:
        found = "text that is not base64" if size is None else f"{size} bytes"
        raise BadPasswordHash(
            f"must be base64 of {expected} bytes (four of salt, and the digest of {algorithm}), got {found}"
        )
