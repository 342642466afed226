"""docs/api.md lists exactly the public names, and each of them is documented."""

from __future__ import annotations

import inspect

import pytest

import fakeamqp
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
