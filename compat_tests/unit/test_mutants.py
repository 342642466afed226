"""The mutants of `make mutants`: what is changed, what is left alone, how a change gets into functions."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from compat_tests.reliability.mutations import PARTS, Mutant, chosen, files, mutants
from compat_tests.reliability.swapping import Functions

SOURCE = '''
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    def never() -> int: return 1

class Box:
    def __init__(self, size: int = 3) -> None:
        """Five of them."""
        super().__init__()
        self.size = size

    def __repr__(self) -> str:
        return "Box" + str(1)

    @property
    def is_full(self) -> bool:
        """Whether it is."""
        return self.size > 2 and not self.size == 9

def checked(value: int | None) -> int:
    if value is None:
        _log.warning("no value of %d", 7)
        raise ValueError(f"{value} is none of 8")
    for each in range(value):
        if each == 4:
            break
    return cast("int", value) + 10
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "fakeamqp" / "model"
    (folder / "codec").mkdir(parents=True)
    (folder / "codec" / "left_out.py").write_text("def codec(): return 1\n")
    (folder / "box.py").write_text(SOURCE)
    return tmp_path


def test_each_part_of_mutants_has_its_own_files() -> None:
    root = Path(__file__).parents[2]
    names = {part: {path.relative_to(root).as_posix() for path in files(root, part)} for part in PARTS}
    assert "fakeamqp/model/queues/classic.py" in names["model"]
    assert "fakeamqp/trace/dialogue.py" in names["trace"]
    assert "fakeamqp/protocols/amqp_0_9_1/codec/frames.py" in names["codecs"]
    assert all(names.values())
    assert sum(map(len, names.values())) == len(set().union(*names.values()))


def test_mutants_include_changes_in_coroutines(root: Path) -> None:
    folder = root / "fakeamqp" / "management"
    folder.mkdir()
    (folder / "app.py").write_text("async def answer(asked):\n    return asked + 1\n")
    found = {(each.function, each.kind, each.new.strip()) for each in mutants(root, "management")}
    assert ("answer", "arithmetic", "return asked - 1") in found


def _loaded(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("box", root / "fakeamqp" / "model" / "box.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _one(root: Path, kind: str, new: str) -> Mutant:
    [found] = [each for each in mutants(root) if each.kind == kind and each.new.strip() == new]
    return found


def test_mutants_of_module_are_exactly_the_expected_changes(root: Path) -> None:
    found = {(each.function, each.kind, each.new.strip()) for each in mutants(root)}
    assert found == {
        ("Box.__init__", "removed statement", "pass"),
        ("Box.is_full", "return value", "return None"),
        ("Box.is_full", "boolean", "return self.size > 2 or not self.size == 9"),
        ("Box.is_full", "comparison", "return self.size >= 2 and not self.size == 9"),
        ("Box.is_full", "comparison", "return self.size <= 2 and not self.size == 9"),
        ("Box.is_full", "boolean", "return self.size > 2 and self.size == 9"),
        ("Box.is_full", "comparison", "return self.size > 2 and not self.size != 9"),
        ("Box.is_full", "constant", "return self.size > 3 and not self.size == 9"),
        ("Box.is_full", "constant", "return self.size > 0 and not self.size == 9"),
        ("Box.is_full", "constant", "return self.size > 2 and not self.size == 10"),
        ("Box.is_full", "constant", "return self.size > 2 and not self.size == 0"),
        ("checked", "comparison", "if value is not None:"),
        ("checked", "removed raise", "pass"),
        ("checked", "argument", "for each in range(None):"),
        ("checked", "comparison", "if each != 4:"),
        ("checked", "constant", "if each == 5:"),
        ("checked", "constant", "if each == 0:"),
        ("checked", "loop", "continue"),
        ("checked", "return value", "return None"),
        ("checked", "arithmetic", "return cast('int', value) - 10"),
        ("checked", "constant", 'return cast("int", value) + 11'),
        ("checked", "constant", 'return cast("int", value) + 0'),
    }


def test_larger_sample_of_mutants_contains_smaller_sample(root: Path) -> None:
    all_of_them = mutants(root)
    small, large = chosen(all_of_them, 5, seed=1), chosen(all_of_them, 9, seed=1)
    assert large[:5] == small
    assert chosen(all_of_them, 5, seed=2) != small
    (root / "fakeamqp" / "model" / "another.py").write_text("def another():\n    return other()\n")
    assert len(mutants(root)) == len(all_of_them) + 1
    assert {each.id for each in all_of_them} < {each.id for each in mutants(root)}


def test_mutant_changes_existing_functions_and_objects(root: Path) -> None:
    module = _loaded(root)
    functions = Functions(root)
    box, checked = module.Box(2), module.checked
    assert not box.is_full and checked(1) == 11
    for kind, new in (
        ("comparison", "return self.size >= 2 and not self.size == 9"),
        ("arithmetic", "return cast('int', value) - 10"),
    ):
        for function, code in functions.changed(_one(root, kind, new)):
            function.__code__ = code
    assert box.is_full and checked(1) == -9


def test_mutant_without_super_call_keeps_closure(root: Path) -> None:
    module = _loaded(root)
    functions = Functions(root)
    without_super = min(
        (each for each in mutants(root) if each.function == "Box.__init__"), key=lambda each: each.first
    )
    for function, code in functions.changed(without_super):
        function.__code__ = code
    assert module.Box(5).size == 5
