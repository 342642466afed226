from __future__ import annotations

import copy
import json
import pickle

import pytest

from fakeamqp.inspect.frozen import FrozenDict, FrozenList, frozen

VALUE = {"shop": "north", "tags": ["a", {"deep": [1, 2]}], "none": None}


def test_frozen_value_equals_its_source():
    assert frozen(VALUE) == VALUE
    assert repr(frozen(VALUE)) == repr(VALUE)
    assert json.loads(json.dumps(frozen(VALUE))) == VALUE


def test_frozen_value_does_not_follow_changes_of_its_source():
    original = {"tags": ["a", {"deep": [1]}]}
    picture = frozen(original)
    original["tags"][1]["deep"].append(2)
    assert picture == {"tags": ["a", {"deep": [1]}]}


@pytest.mark.parametrize(
    "change",
    [
        lambda it: it.__setitem__("shop", "south"),
        lambda it: it.__delitem__("shop"),
        lambda it: it.update(shop="south"),
        lambda it: it.__ior__({"shop": "south"}),
        lambda it: it.setdefault("new", 1),
        lambda it: it.pop("shop"),
        lambda it: it.popitem(),
        lambda it: it.clear(),
        lambda it: it["tags"].append("b"),
        lambda it: it["tags"].extend(["b"]),
        lambda it: it["tags"].__iadd__(["b"]),
        lambda it: it["tags"].__imul__(2),
        lambda it: it["tags"].insert(0, "b"),
        lambda it: it["tags"].remove("a"),
        lambda it: it["tags"].pop(),
        lambda it: it["tags"].sort(),
        lambda it: it["tags"].reverse(),
        lambda it: it["tags"].clear(),
        lambda it: it["tags"].__setitem__(0, "b"),
        lambda it: it["tags"].__delitem__(0),
        lambda it: it["tags"][1]["deep"].append(3),
    ],
)
def test_frozen_value_cannot_be_changed(change):
    picture = frozen(VALUE)
    with pytest.raises(TypeError, match="cannot be changed"):
        change(picture)
    assert picture == VALUE


def test_every_changing_method_of_dict_and_list_is_overridden():
    reading = {
        dict: {"copy", "fromkeys", "get", "items", "keys", "values"},
        list: {"copy", "count", "index"},
    }
    for kind, base in ((FrozenDict, dict), (FrozenList, list)):
        changing = {name for name in dir(base) if not name.startswith("_")} - reading[base]
        assert {name for name in changing if getattr(kind, name) is getattr(base, name)} == set()


def test_equal_frozen_values_have_equal_hashes():
    one, other = frozen(VALUE), frozen(dict(reversed(VALUE.items())))
    assert one == other
    assert hash(one) == hash(other)
    assert hash(one["tags"]) == hash(other["tags"])


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_copy_of_a_frozen_value_stays_frozen(again):
    copied = again(frozen(VALUE))
    assert copied == VALUE
    assert (type(copied), type(copied["tags"])) == (FrozenDict, FrozenList)
