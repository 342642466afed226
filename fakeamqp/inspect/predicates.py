"""Predicates that tests wait for: what they return, their source, and the values in it."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable
from contextlib import suppress
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Generic, TypeVar, cast

from fakeamqp.inspect.errors import BadExpectation
from fakeamqp.inspect.handles import QueueHandle

T = TypeVar("T")

_MOST_VALUES = 10
_MOST_RESULTS = 5
_LONGEST = 200
_SEE = "__fakeamqp_see__"
_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType)
_UNTELLING = (*_FUNCTIONS, type, ModuleType)


class Predicate(Generic[T]):
    """A function of a test that is called until it returns a true value; raises BadExpectation for others."""

    def __init__(self, function: Callable[[], T]) -> None:
        if not callable(function):
            raise BadExpectation(
                f"wait_for({function!r}): give a function, such as lambda: app.shipped == [7]"
            )
        self._function = function
        self.result: T
        """The latest result of the function."""
        self._results: list[str] = []

    def __call__(self, _state: object = None) -> T:
        """Call the function; raises BadExpectation for a result that is always true, such as a coroutine."""
        result = self._function()
        mistake = _true_by_type(result)
        if mistake:
            if inspect.iscoroutine(result):
                result.close()
            raise BadExpectation(f"wait_for({self}) returns {mistake}")
        if not self._results or result is not self.result:
            self.result = result
            shown = _shown(result)
            if shown not in self._results[-1:]:
                self._results.append(shown)
        return result

    def __str__(self) -> str:
        node = _node_of(self._function)
        if isinstance(node, ast.Lambda):
            return _cut(_segment(self._function, node))
        return str(getattr(self._function, "__qualname__", None) or repr(self._function))

    @property
    def results(self) -> str:
        """The results of the function, in order, without repetitions."""
        shown = self._results
        if len(shown) > _MOST_RESULTS:
            shown = [shown[0], "...", *shown[2 - _MOST_RESULTS :]]
        return ", then ".join(shown)

    def values(self) -> list[str]:
        """The values in its expression, a line each, outer ones first. They come from one more call."""
        seen: dict[int, tuple[str, str]] = {}
        again = _instrumented(self._function, seen)
        if again is not None:
            with suppress(Exception):  # An error of this call alone is not what the wait is about.
                again()
        values = dict(seen[number] for number in sorted(seen))
        width = max(map(len, values), default=0)
        return [f"    {source:<{width}}  {value}" for source, value in [*values.items()][:_MOST_VALUES]]


def _true_by_type(result: object) -> str:
    """The problem with a result that is always true, such as a coroutine; "" for others."""
    if inspect.isgenerator(result):
        return "a generator, which is always true; use any(...) or all(...)"
    if inspect.isawaitable(result):
        return "something to await, which is always true; a predicate is not a coroutine function"
    if isinstance(result, _FUNCTIONS):
        return f"the function {result.__qualname__}, which is always true; call it"
    if isinstance(result, QueueHandle):
        return "a handle, which is always true; ask for one of its attributes, such as .exists or .ready"
    return ""


def _node_of(function: object) -> ast.Lambda | ast.FunctionDef | None:
    """The syntax of a function; None if its source is unknown."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return None
    lines = linecache.getlines(code.co_filename, getattr(function, "__globals__", None))
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    functions = (node for node in ast.walk(tree) if isinstance(node, (ast.Lambda, ast.FunctionDef)))
    found = [node for node in functions if _may_be(node, code)]
    if len(found) > 1 and not hasattr(code, "co_positions"):
        return None  # Python 3.10 cannot tell the lambdas of one line apart.
    # Of several lambdas that fit, one inside the other, the innermost.
    return min(found, key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0), default=None)


def _may_be(node: ast.Lambda | ast.FunctionDef, code: CodeType) -> bool:
    if isinstance(node, ast.FunctionDef):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        return node.name == code.co_name and first == code.co_firstlineno
    if code.co_name != "<lambda>" or node.lineno != code.co_firstlineno:
        return False
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    names |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    if not names.issuperset((*code.co_names, *code.co_freevars)):
        return False
    if not hasattr(code, "co_positions"):
        return True
    begin = (node.lineno, node.col_offset)
    end = (node.end_lineno or 0, node.end_col_offset or 0)
    # What precedes the body of a function has the position of the whole or of its first line.
    places = [each for each in code.co_positions() if None not in each and each[2:] != (0, 0)]
    return all(begin <= (each[0], each[2]) and (each[1], each[3]) <= end for each in places)


def _segment(function: Any, node: ast.expr) -> str:
    """The source of an expression, in one line."""
    source = "".join(linecache.getlines(function.__code__.co_filename, function.__globals__))
    segment = ast.get_source_segment(source, node) or ""
    return segment if segment and "\n" not in segment else ast.unparse(node)


def _instrumented(function: Any, seen: dict[int, tuple[str, str]]) -> Callable[[], object] | None:
    """The function with a note of each value in its expression; None if it is more than an expression."""
    node = _node_of(function)
    body = _expression(node)
    if node is None or body is None:
        return None
    marking = _Marking(lambda part: _segment(function, part))

    def see(number: int, value: object) -> object:
        if type(value).__repr__ is not object.__repr__ and not isinstance(value, _UNTELLING):
            seen[number] = (marking.sources[number], _shown(value))
        return value

    arguments = node.args
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [each and ast.Constant(None) for each in arguments.kw_defaults]
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        each.annotation = None
    names = {**function.__globals__, _SEE: see}
    try:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        names.update((name, cell.cell_contents) for name, cell in cells)
    except ValueError:  # A cell is empty.
        return None
    marked = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, marking.within(body))))
    made = eval(compile(marked, "<wait_for>", "eval"), names)
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    owner = getattr(function, "__self__", None)
    return made if owner is None else MethodType(made, owner)


def _expression(node: ast.Lambda | ast.FunctionDef | None) -> ast.expr | None:
    """The expression that a function returns, if it does nothing else."""
    if node is None or isinstance(node, ast.Lambda):
        return node and node.body
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None


class _Marking(ast.NodeTransformer):
    """Wraps the parts of an expression in calls that note their values."""

    _TELLING = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Compare, ast.BinOp)
    _COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)
    _ELSEWHERE = (ast.Lambda, ast.GeneratorExp, ast.JoinedStr)
    """Expressions of which parts run often, later or not at all."""

    def __init__(self, segment: Callable[[ast.expr], str]) -> None:
        self._segment = segment
        self.sources: list[str] = []
        """The source of each wrapped part, outer ones first."""

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, self._ELSEWHERE):
            return node
        whole = isinstance(node, self._COMPREHENSIONS)
        loaded = isinstance(getattr(node, "ctx", None), (ast.Load, type(None)))
        if not (whole or (isinstance(node, self._TELLING) and loaded)):
            return self.generic_visit(node)
        assert isinstance(node, ast.expr)
        number = len(self.sources)
        self.sources.append(self._segment(node))
        inner = node if whole else self.within(node)
        return ast.Call(ast.Name(_SEE, ast.Load()), [ast.Constant(number), inner], [])

    def within(self, node: ast.expr) -> ast.expr:
        """Wrap the parts of an expression. What it calls is a function, and tells nothing."""
        if isinstance(node, self._ELSEWHERE + self._COMPREHENSIONS):
            return node
        if not isinstance(node, ast.Call):
            return cast("ast.expr", self.generic_visit(node))
        if isinstance(node.func, ast.Attribute):
            node.func.value = self.visit(node.func.value)
        elif not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        node.args = [self.visit(each) for each in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node


def _shown(value: object) -> str:
    try:
        return _cut(" ".join(repr(value).split()))
    except Exception as problem:
        return f"<{type(value).__name__} whose repr raises {type(problem).__name__}>"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
