"""Names of a package that are imported on first use, and names that are no more."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def on_first_use(
    package: str, names: Mapping[str, Iterable[str]], defined: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package that imports each name when it is first used.

    Define them for the interpreter only (`if not TYPE_CHECKING`): with a module `__getattr__`, type checkers
    accept every name. `names` has the names by the modules that define them; the package itself has those
    that are `defined`.
    """
    homes = {name: module for module, found in names.items() for name in found}
    public = sorted([*homes, *defined])

    def load(name: str) -> Any:
        if name not in homes:
            if not name.startswith("_"):  # The import system asks for __path__.
                from fakeamqp.renamed import by_owner, error_of

                if name in by_owner(package):  # `from ... import ...` loses the text of an AttributeError.
                    raise ImportError(str(error_of(by_owner(package)[name])), name=package)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, public.copy, public


def raise_if_renamed(obj: object, name: str) -> NoReturn:
    """The `__getattr__` of a class: the AttributeError about an old name says the new one."""
    from fakeamqp.renamed import by_owner, error_of

    for each in type(obj).__mro__:
        change = None if name.startswith("_") else by_owner(each.__name__).get(name)
        if change is not None:
            raise error_of(change)
    raise AttributeError(f"{type(obj).__name__!r} object has no attribute {name!r}", name=name, obj=obj)
