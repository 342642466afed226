"""Names of a package that are imported on first use."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def on_first_use(package: str, names: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """A module-level `__getattr__` that imports each name when it is first used.

    Define it for the interpreter only (`if not TYPE_CHECKING`): with a module `__getattr__`, type checkers
    accept every name. `names` has the names by the modules that define them.
    """
    homes = {name: module for module, defined in names.items() for name in defined}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
