"""What a mutant is: one small change of the code of one function.

`mutants(root, part)` lists all of them for a part of the package (`PARTS`); `SKIPPED` has what it leaves out.
A mutant is compiled from the changed tree of its file, with the line numbers of the file, so that its code
objects can take the places of those that they differ from (`swapping.py`).
"""

from __future__ import annotations

import ast
import copy
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

__all__ = ["PARTS", "SKIPPED", "Mutant", "Part", "changed_tree", "chosen", "files", "mutants"]


class Part(NamedTuple):
    """A part of the package whose code is changed, and the tests that run for it."""

    folders: tuple[str, ...]
    """Below the root of the project."""
    tests: tuple[str, ...]
    """Below compat_tests: quick tests that run in one process and without a second program."""
    of_codecs: bool = False
    """Only the packages named codec; otherwise all but these."""


#: Their names are those of `--part`.
PARTS = {
    "model": Part(
        ("fakeamqp/model", "fakeamqp/protocols"),
        ("unit", "protocol", "golden", "broker", "fuzz", "programs", "time/test_virtual.py", "trace"),
    ),
    "codecs": Part(("fakeamqp/protocols",), ("unit/codec", "unit/amqp_0_9", "golden"), of_codecs=True),
    "faults": Part(("fakeamqp/faults",), ("unit/faults", "faults/test_*.py", "broker")),
    "trace": Part(("fakeamqp/trace",), ("unit/trace", "trace", "broker/test_checked.py")),
    "management": Part(("fakeamqp/management",), ("management/test_*.py",)),
    "spark": Part(("fakeamqp/spark",), ("unit/spark",)),
}

SKIPPED = {
    "codecs": "the packages named codec, which are a part of their own",
    "run at import": "tables, class bodies, decorators, default values and functions that only imports run",
    "files without tests": "modules that no test of the part reaches: some need a session of Spark",
    "texts": "docstrings, f-strings and strings with spaces: sentences for people, compared on real nodes",
    "logs": "calls of a logger",
    "views": "__repr__ and __str__",
    "types": "annotations, casts and TYPE_CHECKING blocks",
    "abstract": "functions that only raise NotImplementedError",
}

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Their arguments are types, or nothing of theirs is behaviour.
_LEFT_ALONE = re.compile(r"(cast|super|isinstance|issubclass|TypeVar|(\w*\.)*_?log(ger)?\.\w+|self\._warn)$")
_LOGGING = re.compile(r"((\w*\.)*_?log(ger)?\.\w+|self\._warn)$")


class Mutant(NamedTuple):
    """One change: in `file`, within the outermost function or method `function`.

    `first` and `last` are the lines of the changed expression or statement; `old` and `new` are these lines
    as text; `number` tells it from others of the same text in the same function.
    """

    file: str
    function: str
    kind: str
    first: int
    last: int
    old: str
    new: str
    number: int

    @property
    def id(self) -> str:
        """The same in every checkout in which the function has the changed line."""
        parts = (self.file, self.function, self.kind, self.old, self.new, str(self.number))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    @property
    def diff(self) -> str:
        """The lines that change, and what they become."""
        removed = [f"-{line}" for line in self.old.splitlines()]
        return "\n".join([*removed, *(f"+{line}" for line in self.new.splitlines())])


def chosen(all_of_them: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """A sample. A larger one of the same seed contains it; a change of one function leaves the others in."""

    def key(mutant: Mutant) -> str:
        return hashlib.sha256(f"{seed} {mutant.id}".encode()).hexdigest()

    return sorted(all_of_them, key=key)[:count]


def files(root: Path, part: str = "model") -> list[Path]:
    """The modules whose functions are changed."""
    folders, of_codecs = PARTS[part].folders, PARTS[part].of_codecs
    found = [path for each in folders for path in sorted((root / each).rglob("*.py"))]
    return [path for path in found if ("codec" in path.relative_to(root).parts) == of_codecs]


def mutants(root: Path, part: str = "model") -> list[Mutant]:
    """All mutants of all files of a part."""
    return [mutant for path in files(root, part) for mutant, _ in _of_file(root, str(path.relative_to(root)))]


def changed_tree(root: Path, mutant: Mutant) -> ast.Module:
    """The module with the change. Raises LookupError if its file has changed since."""
    for each, tree in _of_file(root, mutant.file):
        if each == mutant:
            return tree
    raise LookupError(f"{mutant.file} has changed: no {mutant.old!r} in line {mutant.first}")


def _of_file(root: Path, name: str) -> Iterator[tuple[Mutant, ast.Module]]:
    """The tree is that of the mutant until the next one is asked for."""
    text = (root / name).read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines = text.splitlines()
    for function, node in _functions(tree.body, ""):
        seen: dict[tuple[str, str, str], int] = {}
        for kind, old_node, new_node in _changes(node):
            first, last = old_node.lineno, old_node.end_lineno or old_node.lineno
            old = "\n".join(lines[first - 1 : last])
            new = _spliced(lines, old_node, new_node)
            key = (kind, old, new)
            seen[key] = seen.get(key, -1) + 1
            yield Mutant(name, function, kind, first, last, old, new, seen[key]), tree


def _spliced(lines: list[str], old: Any, new: ast.AST) -> str:
    """The lines of a node with another one in its place. Columns are counted in bytes."""
    before = lines[old.lineno - 1].encode()[: old.col_offset].decode()
    after = lines[old.end_lineno - 1].encode()[old.end_col_offset :].decode()
    text: str = before + ast.unparse(new).split("\n")[0] + after
    return text


def _functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, _Function]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in (
            "__repr__",
            "__str__",
        ):
            if not _is_abstract(node):
                yield prefix + node.name, node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from _functions([*node.body, *node.orelse], prefix)


def _is_abstract(node: _Function) -> bool:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return not body or (len(body) == 1 and "NotImplementedError" in ast.unparse(body[0]))


def _changes(function: _Function) -> Iterator[tuple[str, Any, ast.AST]]:
    """Change a node in the tree, give it and what is in its place, and change it back."""
    for index, statement in enumerate(function.body):
        if index == 0 and ast.get_docstring(function) is not None:
            continue
        for parent, name, place, node in _walk(function, "body", index, statement):
            for kind, new in _replacements(parent, name, node):
                ast.copy_location(new, node)
                ast.fix_missing_locations(new)
                _put(parent, name, place, new)
                yield kind, node, new
                _put(parent, name, place, node)


def _put(parent: Any, name: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, name, node)
    else:
        getattr(parent, name)[index] = node


def _walk(
    parent: ast.AST, name: str, index: int | None, node: ast.AST
) -> Iterator[tuple[Any, str, Any, Any]]:
    """Every node whose change is a change of behaviour, with its place."""
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.Call) and _LOGGING.match(ast.unparse(node.func)):
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    yield parent, name, index, node
    for field_name, value in ast.iter_fields(node):
        if field_name in ("annotation", "returns", "decorator_list", "args") and not isinstance(
            node, ast.Call
        ):
            continue  # Of functions within functions, these too; of a lambda, the defaults.
        if isinstance(node, ast.Call) and field_name == "args" and _name(node).endswith("cast"):
            value = value[1:]
            for position, each in enumerate(value, 1):
                yield from _walk(node, field_name, position, each)
            continue
        if isinstance(value, list):
            for position, each in enumerate(value):
                if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                    continue  # A docstring.
                if isinstance(each, ast.AST):
                    yield from _walk(node, field_name, position, each)
        elif isinstance(value, ast.AST):
            yield from _walk(node, field_name, None, value)


def _name(node: ast.Call) -> str:
    return ast.unparse(node.func)


def _replacements(parent: Any, name: str, node: Any) -> Iterator[tuple[str, ast.AST]]:
    new: Any
    one_comparison = isinstance(node, ast.Compare) and len(node.ops) == 1
    if isinstance(node, ast.Compare):
        for position, operator in enumerate(node.ops):
            for other in _COMPARISONS[type(operator)]:
                new = copy.copy(node)
                new.ops = [*node.ops[:position], other(), *node.ops[position + 1 :]]
                yield "comparison", new
    elif isinstance(node, (ast.BinOp, ast.AugAssign)):
        if type(node.op) in _ARITHMETIC and not _is_text(node):
            new = copy.copy(node)
            new.op = _ARITHMETIC[type(node.op)]()
            yield "arithmetic", new
    elif isinstance(node, ast.BoolOp):
        new = copy.copy(node)
        new.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "boolean", new
    elif isinstance(node, ast.UnaryOp):
        if isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
            yield "boolean" if isinstance(node.op, ast.Not) else "arithmetic", copy.copy(node.operand)
    elif isinstance(node, ast.Constant):
        yield from _constants(parent, name, node)
    elif isinstance(node, ast.Call) and not _LEFT_ALONE.match(_name(node)):
        yield from _arguments(node)
    if name in ("test", "ifs") and not isinstance(node, (ast.UnaryOp, ast.Constant)) and not one_comparison:
        yield "negated condition", ast.UnaryOp(ast.Not(), node)
    yield from _statements(node)


def _is_text(node: Any) -> bool:
    """Whether an operand is a text as it stands: any other operator fails at once."""
    if isinstance(node, ast.AugAssign):
        return _is_text(node.value)
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _constants(parent: Any, name: str, node: ast.Constant) -> Iterator[tuple[str, ast.AST]]:
    value = node.value
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, (int, float)):
        yield "constant", ast.Constant(value + 1)
        if value:
            yield "constant", ast.Constant(0)
    elif value is None:
        if not isinstance(parent, (ast.Compare, ast.Return, ast.Tuple)):
            yield "constant", ast.Constant(True)
    elif isinstance(value, str):
        if " " not in value:
            yield "constant", ast.Constant("XX" + value)
    elif isinstance(value, bytes):
        yield "constant", ast.Constant(b"XX" + value)


def _arguments(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    for position, argument in enumerate(node.args):
        if isinstance(argument, (ast.Constant, ast.JoinedStr, ast.Starred)):
            continue  # A constant has a change of its own.
        new = copy.copy(node)
        new.args = [*node.args[:position], ast.Constant(None), *node.args[position + 1 :]]
        yield "argument", new
    plain = not any(isinstance(each, (ast.Starred, ast.JoinedStr)) for each in node.args)
    if len(node.args) == 2 and plain and _name(node) not in ("max", "min"):
        new = copy.copy(node)
        new.args = node.args[::-1]
        yield "argument", new
    for position, keyword in enumerate(node.keywords):
        if keyword.arg is not None:
            new = copy.copy(node)
            new.keywords = [*node.keywords[:position], *node.keywords[position + 1 :]]
            yield "argument", new


def _statements(node: Any) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        if not _LOGGING.match(_name(node.value)):
            yield "removed statement", ast.Pass()
    elif isinstance(node, ast.Assign):
        if not all(isinstance(target, ast.Name) for target in node.targets):
            yield "removed statement", ast.Pass()
    elif isinstance(node, ast.AnnAssign):
        if node.value is not None and not isinstance(node.target, ast.Name):
            yield "removed statement", ast.Pass()
    elif isinstance(node, (ast.AugAssign, ast.Delete)):
        yield "removed statement", ast.Pass()
    elif isinstance(node, ast.Raise):
        yield "removed raise", ast.Pass()
    elif isinstance(node, ast.Return):
        value = node.value
        prose = isinstance(value, ast.Constant) and isinstance(value.value, str) and " " in value.value
        if prose or not (value is None or isinstance(value, ast.Constant)):
            yield "return value", ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Break):
        yield "loop", ast.Continue()
    elif isinstance(node, ast.Continue):
        yield "loop", ast.Break()
