"""Names of a package that are imported on first use, and names that are no more."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def on_first_use(
    package: str, defined: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package that imports each name when it is first used.

    The names are those that its source imports for type checkers, as `NAME as NAME`, in this form, for with a
    module `__getattr__` of their own type checkers accept every name:

        if TYPE_CHECKING:
            from package.module import Name as Name
        else:
            __getattr__, __dir__ = on_first_use(__name__)

    `__all__` has these names, and those that are `defined` in the package itself.
    """

    @cache
    def homes() -> Mapping[str, str]:
        return _type_checking_imports(package)

    def public() -> list[str]:
        return sorted({*homes(), *defined})

    def load(name: str) -> Any:
        if name == "__all__":
            value: Any = public()
        elif name.startswith("_"):  # The import system asks for __path__.
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        elif name in homes():
            value = getattr(import_module(homes()[name]), name)
        else:
            from fakeamqp.renamed import by_owner, error_of

            if name in by_owner(package):  # `from ... import ...` loses the text of an AttributeError.
                raise ImportError(str(error_of(by_owner(package)[name])), name=package)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    return load, public


def _type_checking_imports(package: str) -> dict[str, str]:
    """Name -> module of what a package imports for type checkers, and otherwise on first use."""
    import ast
    import inspect

    source = inspect.getsource(sys.modules[package])
    return {
        alias.name: str(imported.module)
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and block.orelse
        for imported in block.body
        if isinstance(imported, ast.ImportFrom)
        for alias in imported.names
        if alias.asname == alias.name
    }


def raise_if_renamed(obj: object, name: str) -> NoReturn:
    """The `__getattr__` of a class: the AttributeError about an old name says the new one."""
    from fakeamqp.renamed import by_owner, error_of

    for each in type(obj).__mro__:
        change = None if name.startswith("_") else by_owner(each.__name__).get(name)
        if change is not None:
            raise error_of(change)
    raise AttributeError(f"{type(obj).__name__!r} object has no attribute {name!r}", name=name, obj=obj)
