"""`--shuffle SEED` mixes the tests of all files, in an order that its seed repeats."""

from __future__ import annotations

import gc
import re
from itertools import pairwise

import pytest

from compat_tests.tools import folding
from compat_tests.tools.shuffle import THRESHOLDS

FILES = {name: "".join(f"def test_{number}():\n    pass\n" for number in range(8)) for name in ("a", "b")}


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(**{f"test_{name}": text for name, text in FILES.items()})
    return pytester


def order(suite: pytest.Pytester, *args: str) -> list[str]:
    recorder = suite.inline_run("-p", "compat_tests.tools.shuffle", *args)
    assert recorder.ret == 0
    return [each.nodeid for each in recorder.getreports("pytest_runtest_logreport") if each.when == "call"]


def test_without_shuffle_option_tests_run_in_file_order(suite: pytest.Pytester) -> None:
    assert order(suite) == sorted(order(suite))


def test_same_shuffle_seed_repeats_order(suite: pytest.Pytester) -> None:
    first = order(suite, "--shuffle", "1")
    assert order(suite, "--shuffle", "1") == first
    assert order(suite, "--shuffle", "2") != first
    assert sorted(first) == order(suite)


def test_shuffle_mixes_tests_of_all_files(suite: pytest.Pytester) -> None:
    files = [each.partition("::")[0] for each in order(suite, "--shuffle", "1")]
    changes = sum(here != there for here, there in pairwise(files))
    assert changes > 1


def test_shuffle_mixes_cases_of_folded_test(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(folding, "FOLDED", (suite.path,))
    suite.makepyfile(
        test_a="""
        import pytest

        @pytest.mark.parametrize("number", range(9))
        def test_it(number):
            print("case", number)
        """,
        test_b="",
    )
    order(suite, "-p", "compat_tests.tools.folding", "-s", "--shuffle", "3")
    ran = re.findall(r"case (\d)", capsys.readouterr().out)
    assert sorted(ran) == list("012345678") != ran


def test_shuffle_lowers_garbage_collection_thresholds_during_run(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_a=f"import gc\ndef test_it():\n    assert gc.get_threshold() == {THRESHOLDS}\n")
    before = gc.get_threshold()
    order(suite, "--shuffle", "1")
    assert gc.get_threshold() == before


def test_asyncio_debug_mode_is_off_only_in_simulated_loops(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONASYNCIODEBUG", "1")
    suite.makepyfile(
        test_a="""
        import asyncio
        from fakeamqp import simulation

        async def in_debug_mode():
            return asyncio.get_running_loop().get_debug()

        def test_it():
            assert asyncio.run(in_debug_mode())
            assert not simulation.run(in_debug_mode())
            assert simulation.run(in_debug_mode(), debug=True)
        """
    )
    order(suite, "--shuffle", "1")
