"""A suite that cannot be had says why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from compat_tests.client_suites import sources
from compat_tests.client_suites.sources import Unavailable, source
from compat_tests.client_suites.suites import SUITES


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAKEAMQP_CLIENT_SUITES", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_source_of_suite_on_too_old_python_is_unavailable() -> None:
    with pytest.raises(Unavailable, match=r"^aio-pika 10\.2\.1 needs Python 9\.0$"):
        source(replace(SUITES["aio-pika"], least_python=(9, 0)))


def test_source_from_unreachable_archive_is_unavailable_and_not_cached(
    monkeypatch: pytest.MonkeyPatch, empty_cache: Path
) -> None:
    monkeypatch.setattr(sources, "_POOL", "http://127.0.0.1:1/pool/")
    with pytest.raises(
        Unavailable, match=r"the suite of pika cannot be had from http://127\.0\.0\.1:1/pool/p/"
    ):
        source(SUITES["pika"])
    # Half a suite is not taken for a whole one.
    assert not list(empty_cache.glob("*/.complete"))


def test_source_without_package_index_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(Unavailable, match="the suite of kombu cannot be had from PyPI: ERROR: No matching"):
        source(SUITES["kombu"])
