"""File names for tests: valid on every file system, and the same in every run and every worker."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["file_name"]

_LONGEST = 150
"""In bytes; file systems allow 255, the rest is for a suffix."""
_UNSAFE = re.compile(r"\W+")
_PYTHON = re.compile(r"\.py(?=::|$)")
_OF_WINDOWS = re.compile(r"(?:aux|con|nul|prn|(?:com|lpt)[0-9])", re.IGNORECASE)


def file_name(nodeid: str, *, distinct: bool = False) -> str:
    """A name, without its ending, for files about a test.

    The name of `tests/test_a.py::test_b[x]` is `tests-test_a-test_b-x`: letters and digits of any script,
    underscores, and single hyphens. It contains no dot, so adding a dot and a suffix cannot produce the name
    of another test. If nothing is left, the name is `test`.

    Args:
        nodeid: of the test, as pytest writes it.
        distinct: add a digest of `nodeid`, because another test has the same name. Shortened names always
            have one.
    """
    plain = unicodedata.normalize("NFC", _PYTHON.sub("", nodeid))
    name = _UNSAFE.sub("-", plain).strip("-") or "test"
    if _OF_WINDOWS.fullmatch(name):
        name = f"_{name}"
    shortened = _at_most(name, _LONGEST)
    if shortened == name and not distinct:
        return name
    import hashlib

    digest = hashlib.sha256(nodeid.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{shortened.rstrip('-')}-{digest}"


def _at_most(name: str, octets: int) -> str:
    return name.encode()[:octets].decode(errors="ignore")
