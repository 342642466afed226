"""Put a mutant into functions that exist: their code objects are replaced, and nothing is imported again."""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from compat_tests.reliability.mutations import Mutant, changed_tree

__all__ = ["Functions"]


class Functions:
    """The functions of this process, those wrapped by decorators included.

    Args:
        root: the folder of the project.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._found: dict[tuple[str, int, str], list[FunctionType]] = defaultdict(list)
        inside = str(root / "fakeamqp")
        for each in gc.get_objects():
            if type(each) is FunctionType and each.__code__.co_filename.startswith(inside):
                self._found[_key(each.__code__)].append(each)

    def changed(self, mutant: Mutant) -> list[tuple[FunctionType, CodeType]]:
        """The functions that the mutant is about, and the code that they get.

        Raises:
            LookupError: no function has this code, or it cannot take the place of the other.
        """
        tree = changed_tree(self._root, mutant)
        found = []
        for code in self._codes(tree, mutant):
            for function in self._found.get(_key(code), ()):
                missing = set(function.__code__.co_freevars) - set(code.co_freevars)
                if missing:
                    _mention(tree, code, missing)
        for code in self._codes(tree, mutant):
            for function in self._found.get(_key(code), ()):
                if function.__code__.co_freevars != code.co_freevars:
                    raise LookupError(f"{mutant.function} closes over other names")
                found.append((function, code))
        if not found:
            raise LookupError(f"no function of {mutant.file} has the code of {mutant.function}")
        return found

    def _codes(self, tree: ast.Module, mutant: Mutant) -> list[CodeType]:
        module = compile(tree, str(self._root / mutant.file), "exec", dont_inherit=True)
        inner = mutant.function + "."
        return [code for path, code in _all(module, "") if path == mutant.function or path.startswith(inner)]


def _key(code: CodeType) -> tuple[str, int, str]:
    return code.co_filename, code.co_firstlineno, code.co_name


def _all(code: CodeType, prefix: str) -> Iterator[tuple[str, CodeType]]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield prefix + each.co_name, each
            yield from _all(each, f"{prefix}{each.co_name}.")


def _mention(tree: ast.Module, code: CodeType, names: set[str]) -> None:
    """Have a function close over names that the mutant uses no more: its closure has cells for them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == code.co_firstlineno:
                never = ast.If(
                    ast.Constant(False), [ast.Expr(ast.Name(name, ast.Load())) for name in sorted(names)], []
                )
                ast.copy_location(never, node.body[-1])
                node.body.append(ast.fix_missing_locations(never))
