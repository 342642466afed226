from __future__ import annotations

import gc
import importlib
import pkgutil
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Imported before anything is frozen: it asks the collector who knows a random number generator.
import hypothesis  # noqa: F401
import pytest

import fakeamqp

if TYPE_CHECKING:
    from compat_tests.tools.sharing import Scheduler

pytest_plugins = [
    "compat_tests.tools.tiers",  # --tier; before the next one
    "compat_tests.tools.folding",  # all parameters of a function are one test; --each-case
    "compat_tests.tools.conformance_plugin",  # --conformance and the marker `rule`
    "compat_tests.tools.faults_plugin",  # --record-faults
    "compat_tests.tools.shuffle",  # --shuffle
    "compat_tests.tools.runtimes",  # --runtime
    "compat_tests.tools.coalescing",  # --coalescing
    "compat_tests.scripted.on_node",  # --on
    "compat_tests.scripted.through_proxy",  # --through-proxy
    "compat_tests.tools.fuzz_plugin",  # how many examples property tests draw
    "pytester",
]


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Have garbage looked for in what tests make, not among the many thousand objects that describe them.

    Tests of clients have it looked for after each: that takes a millisecond then, and a quarter of a second
    otherwise.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        if session.items:  # Not where others collect for this process.
            gc.collect()
            gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def whole_package() -> None:
    """All modules of the package but those about Spark."""
    for module in pkgutil.walk_packages(fakeamqp.__path__, "fakeamqp."):
        if not module.name.startswith("fakeamqp.spark") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)


@pytest.fixture
def pytester(
    whole_package: None, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    """Inner runs keep their order, whatever shuffles this one, and have no timeout.

    Their tests are told apart by their order. pytest-timeout has one timer in a process: an inner run would
    stop the one that waits for the outer test.

    The fixture makes `sys.modules` at its end as it was at its beginning. A module whose first use was
    in between would be imported again later, and its classes would exist twice: all are imported before.
    """
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:randomly -p no:timeout")
    return pytester


@pytest.fixture(scope="session")
def spark_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's cache folder with all that fast mode needs. Making that takes a quarter of a minute."""
    from fakeamqp.spark import SessionError
    from fakeamqp.spark.session.fast import FastModeUnavailable, prepare
    from fakeamqp.spark.session.installation import find_installation

    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        try:
            prepare(find_installation())
        except FastModeUnavailable:
            pass  # Sessions are the usual ones then, and say why.
        except SessionError as error:
            pytest.skip(str(error))
    return folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler | None:
    """Where processes share the suite, one of them does all that needs Spark."""
    if config.getoption("dist") != "loadgroup":
        return None
    from compat_tests.tools.sharing import Scheduler

    return Scheduler(config, log)
