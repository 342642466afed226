"""A matrix is one test: it runs every case and lists every case that failed.

```python
def test_every_octet_counts() -> None:
    with cases() as case:
        for byte in range(256):
            with case(byte):
                assert read(byte) == byte
```

`pytest.mark.parametrize` needs none of this where `folding.py` makes one test of all parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

__all__ = ["Failed", "cases", "listed", "marked", "marked_rows", "rows"]


@dataclass(frozen=True)
class Failed:
    """A case that failed, and why."""

    name: str
    error: BaseException


@contextmanager
def cases() -> Iterator[Callable[..., AbstractContextManager[None]]]:
    """Collect what fails in the cases of one test.

    Gives a function: `with case(*index):` runs one case. A failure there does not stop the others. Raises one
    AssertionError that lists all of them at the end, and AssertionError where no case has run.
    """
    failed: list[Failed] = []
    count = 0

    @contextmanager
    def case(*index: object) -> Iterator[None]:
        nonlocal count
        count += 1
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:
            failed.append(Failed("-".join(map(str, index)), error))

    yield case
    assert count, "the matrix has no case"
    if failed:
        raise AssertionError(listed(failed, count)) from failed[0].error


def listed(failed: list[Failed], count: int) -> str:
    """Every case that failed, with the text of its error."""
    lines = [f"{len(failed)} of {count} cases failed:"]
    for each in failed:
        first, *more = (str(each.error) or repr(each.error)).splitlines()
        lines += [f"[{each.name}] {type(each.error).__name__}: {first}", *(f"    {line}" for line in more)]
    return "\n".join(lines)


def rows(names: str, *values: Any, ids: Any = None) -> pytest.MarkDecorator:
    """`pytest.mark.parametrize` of some names, such as `"code, text"`, with a line for each row of values."""
    return pytest.mark.parametrize(names, values, ids=ids)


def marked(*rows: tuple[Any, ...]) -> list[Any]:
    """The rows of `pytest.mark.parametrize`, each with its marks in front: one, or a tuple of them."""
    return [pytest.param(*values, marks=marks) for marks, *values in rows]


def marked_rows(names: str, *values: tuple[Any, ...], ids: Any = None) -> pytest.MarkDecorator:
    """`rows`, each with its marks in front, as for `marked`."""
    return rows(names, *marked(*values), ids=ids)
