"""docs/api.md lists exactly the public names, and each of them is documented."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module

import pytest

import fakeamqp
import fakeamqp.errors
from compat_tests.tools import api_page

pytest.importorskip("pyspark", reason="the page lists names of fakeamqp.spark.testing")


def test_api_page_is_up_to_date_with_exported_names() -> None:
    assert api_page.PAGE.read_text() == api_page.page(), "run `python -m compat_tests.tools.api_page`"


def test_every_public_name_has_docstring() -> None:
    assert list(api_page.undocumented()) == []


def test_api_page_lists_every_exported_name_and_broker_member() -> None:
    page = api_page.PAGE.read_text()
    assert [name for name in fakeamqp.__all__ if f"| `{name}` |" not in page] == []
    members = [name for name, _ in inspect.getmembers(fakeamqp.Broker) if not name.startswith("_")]
    section = page.split("### `Broker`\n")[1].split("\n#")[0]
    assert [name for name in members if f"| `{name}` |" not in section] == []


def test_dir_of_package_lists_only_exports_and_unknown_name_raises() -> None:
    assert dir(fakeamqp) == sorted(fakeamqp.__all__)
    for name in fakeamqp.__all__:
        assert getattr(fakeamqp, name) is not None
    with pytest.raises(AttributeError, match="module 'fakeamqp' has no attribute 'Brokr'"):
        fakeamqp.Brokr  # type: ignore[attr-defined]  # noqa: B018


INTERNAL = {"BadRequest", "ChannelCrash", "ContentRefused", "SelectorFull"}
"""Errors that the broker turns into answers of a protocol or of HTTP."""


def errors(base: type) -> Iterator[type]:
    for each in base.__subclasses__():
        yield each
        yield from errors(each)


def test_every_error_is_found_in_the_public_module_that_its_text_names() -> None:
    for module in api_page.MODULES:
        for name in import_module(module).__all__:
            getattr(import_module(module), name)
    for each in {*errors(fakeamqp.FakeAMQPError), fakeamqp.errors.UnreadResult}:
        ours = each.__module__.startswith("fakeamqp") and not each.__module__.startswith(
            ("fakeamqp.spark", "fakeamqp.protocols")
        )
        if each.__name__ in INTERNAL or each.__name__.startswith("_") or not ours:
            continue
        assert each.__module__ in api_page.MODULES, (each, each.__module__)
        assert getattr(import_module(each.__module__), each.__name__) is each
        assert getattr(fakeamqp.errors, each.__name__) is each


def test_package_exports_at_most_14_names() -> None:
    assert len(fakeamqp.__all__) <= 14


def test_name_that_moved_is_refused_with_its_new_module() -> None:
    with pytest.raises(ImportError, match=r"is `from fakeamqp.errors import PortInUse`"):
        from fakeamqp import PortInUse  # type: ignore[attr-defined] # noqa: F401
