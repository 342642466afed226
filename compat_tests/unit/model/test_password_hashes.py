from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from fakeamqp import FakeAMQPError, User


def encoded(algorithm: str, octets: bytes = b"salt") -> str:
    return base64.b64encode(octets + hashlib.new(algorithm, b"saltsecret").digest()).decode()


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
def test_user_with_password_hash_accepts_only_its_password(algorithm: str) -> None:
    user = User("ann", password_hash=(algorithm, encoded(algorithm)))
    assert user.has_password("secret") and not user.has_password("Secret")


@pytest.mark.parametrize(
    ("password_hash", "words"),
    [
        (("sha256", "not base64!"), "must be base64 of 36 bytes .* got text that is not base64"),
        (("sha256", "c2FsdA=="), "got 4 bytes"),
        (("sha256", encoded("sha512")), "got 68 bytes"),
        (("sha512", encoded("sha512", b"salty")), "must be base64 of 68 bytes .* got 69 bytes"),
        (("md4", encoded("sha256")), "one of the algorithms sha256, sha512, not 'md4'"),
        (encoded("sha256"), "must be a pair"),
        (("sha256", None), "must be a pair"),
        (("sha256",), "must be a pair"),
    ],
)
def test_user_with_malformed_password_hash_is_refused(password_hash: Any, words: str) -> None:
    with pytest.raises(FakeAMQPError, match=f"user 'ann': password_hash .*{words}"):
        User("ann", password_hash=password_hash)
