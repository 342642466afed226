"""`--amqp-trace`: a recording for every test."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from compat_tests.plugin.conftest import WriteTests
from compat_tests.unit.trace.pages import data_of
from fakeamqp.trace import load
from pytest_plugin.file_names import file_name

USES_A_BROKER = """
    def test_it(pika_channel):
        pika_channel.queue_declare("orders")
"""
FORMATS = ("html", "jsonl", "pcapng")


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    return pytester.path / "traces"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_every_test_that_used_a_broker_gets_its_files(write_tests: WriteTests, folder: Path) -> None:
    write_tests(
        USES_A_BROKER
        + """
    def test_without_a_broker():
        pass

    def test_fails(pika_channel):
        assert False, "on purpose"
    """
    ).run(
        "--amqp-trace=traces",
        passed=2,
        failed=1,
        said=["=* AMQP recordings =*", "*", "AMQP recordings of 2 tests: 6 files in traces"],
    )
    assert names(folder) == [
        *(f"test_inner-test_fails.{ending}" for ending in FORMATS),
        *(f"test_inner-test_it.{ending}" for ending in FORMATS),
    ]
    text = load(folder / "test_inner-test_it.jsonl").timeline()
    assert "queue.declare queue='orders'" in text
    assert "connection.close-ok" in text, "it goes on to the end of the test's fixtures"
    page = (folder / "test_inner-test_it.html").read_text()
    assert "test_inner.py::test_it" in page and "orders" in page
    assert (folder / "test_inner-test_it.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"


def test_page_of_a_failed_test_has_its_assertion_source_and_moment(
    write_tests: WriteTests, folder: Path
) -> None:
    write_tests("""
        import pytest

        @pytest.fixture
        def late(amqp_broker):
            yield
            amqp_broker.publish(b"after the failure", routing_key="orders")

        @pytest.mark.parametrize("count", [2])
        def test_fails(amqp_broker, late, count):
            amqp_broker.publish(b"one", routing_key="orders")
            check(amqp_broker, count)

        def check(broker, count):
            assert count == 0

        def test_passes(amqp_broker):
            pass
    """).run("--amqp-trace=traces", "--amqp-trace-formats=html", passed=1, failed=1)
    [failed, passed] = [data_of(path.read_text("utf-8")) for path in sorted(folder.glob("*.html"))]
    failure = failed["failure"]
    assert failure["test"] == "test_inner.py::test_fails[2]"
    assert failure["text"].startswith("assert 2 == 0")
    assert failure["file"] == "test_inner.py"
    # The line of the test, not of the function that it calls.
    assert failure["source"][failure["line"] - failure["first"]].strip() == "check(amqp_broker, count)"
    assert 0 < failure["event"] < failed["events"]
    assert passed["failure"] is None


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--amqp-trace=traces", "-q"], "AMQP recordings of 1 test: 3 files in traces"),
        (
            ["--amqp-trace=traces", "--amqp-trace-formats=html"],
            "AMQP recordings of 1 test: 1 file in traces",
        ),
    ],
)
def test_a_run_that_passes_says_where_its_recordings_are(
    write_tests: WriteTests, arguments: list[str], line: str
) -> None:
    result = write_tests(USES_A_BROKER).run(*arguments, passed=1, said=[line])
    result.stdout.no_fnmatch_line("*= AMQP recordings =*")


def test_run_without_recordings_prints_no_line_about_recordings(write_tests: WriteTests) -> None:
    for arguments in ([], ["--amqp-trace=traces"]):
        result = write_tests("def test_it(): pass").run(*arguments, passed=1)
        result.stdout.no_fnmatch_line("*AMQP recording*")


def test_run_without_the_trace_option_writes_no_recording(
    write_tests: WriteTests, pytester: pytest.Pytester
) -> None:
    write_tests(USES_A_BROKER).run(passed=1)
    assert not [path for path in pytester.path.rglob("*") if path.suffix in (".jsonl", ".html", ".pcapng")]


def test_the_report_of_a_failed_test_has_the_paths(write_tests: WriteTests) -> None:
    source = """
        def test_it(pika_channel):
            assert False, "on purpose"

        def test_passes(pika_channel):
            pass
        """
    result = write_tests(source).run("--amqp-trace=traces", passed=1, failed=1)
    stem = os.path.join("traces", "test_inner-test_it")
    result.stdout.fnmatch_lines(
        [
            "*AMQP timeline*",
            "*AMQP recording -*",
            f"{stem}.jsonl",
            f"{stem}.html",
            f"{stem}.pcapng",
            "=* AMQP recordings =*",
            f"test_inner.py::test_it: {stem}.html",
            "=* short test summary info =*",
        ]
    )
    assert "test_passes" not in result.stdout.str()
    # Where reports are not shown, there is still the summary.
    write_tests(source).run(
        "--amqp-trace=traces",
        "--tb=no",
        "-q",
        "--amqp-trace-formats=jsonl",
        said=[f"test_inner.py::test_it: {stem}.jsonl"],
    )


def test_a_fixture_that_fails_is_recorded(write_tests: WriteTests, folder: Path) -> None:
    write_tests("""
        @pytest.fixture
        def orders(pika_channel):
            pika_channel.queue_declare("orders", passive=True)

        def test_it(orders):
            pass
    """).run("--amqp-trace=traces", errors=1, said=["test_inner.py::test_it: *test_inner-test_it.html"])
    assert "NOT_FOUND" in load(folder / "test_inner-test_it.jsonl").timeline()


def test_each_broker_of_a_test_has_files_of_its_own(write_tests: WriteTests, folder: Path) -> None:
    write_tests("""
        def test_it(make_amqp_broker):
            for number in range(3):
                broker = make_amqp_broker(trace=0) if number == 1 else make_amqp_broker()
                broker.load_definitions({"queues": []})
                broker.faults.memory_alarm(f"number {number}")
                broker.publish(f"number {number}", routing_key="nowhere")
    """).run("--amqp-trace=traces", "--amqp-trace-formats=jsonl", passed=1)
    assert names(folder) == ["test_inner-test_it.3.jsonl", "test_inner-test_it.jsonl"]
    assert "number 0" in (folder / "test_inner-test_it.jsonl").read_text()
    assert "number 2" in (folder / "test_inner-test_it.3.jsonl").read_text()


@pytest.mark.parametrize("asynchronous", ["asyncio", "anyio", "unittest"])
def test_asynchronous_tests_and_classes_are_recorded(
    write_tests: WriteTests, folder: Path, asynchronous: str
) -> None:
    if asynchronous == "unittest":
        source = """
        class TestOrders(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def take_channel(self, pika_channel):
                self.channel = pika_channel

            def test_it(self):
                self.channel.queue_declare("orders")
        """
    else:
        source = f"""
        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        class TestOrders:
            @pytest.mark.{asynchronous}
            async def test_it(self, aio_pika_connection):
                channel = await aio_pika_connection.channel()
                await channel.declare_queue("orders")
        """
    write_tests(source).run("--amqp-trace=traces", passed=1)
    assert names(folder) == [f"test_inner-TestOrders-test_it.{ending}" for ending in FORMATS]
    assert "orders" in (folder / "test_inner-TestOrders-test_it.jsonl").read_text()


# --- options ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--amqp-trace-formats= html,html ", "-oamqp_trace_formats=html"])
def test_formats_can_be_chosen(write_tests: WriteTests, folder: Path, option: str) -> None:
    write_tests(USES_A_BROKER).run("--amqp-trace=traces", option, passed=1)
    assert names(folder) == ["test_inner-test_it.html"]


def test_the_folder_may_be_in_the_ini_file_and_is_beside_it(
    write_tests: WriteTests, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = pytester.mkdir("elsewhere")
    result = write_tests(USES_A_BROKER).run("-oamqp_trace=some/traces", passed=1)
    assert names(pytester.path / "some" / "traces") == [f"test_inner-test_it.{ending}" for ending in FORMATS]
    monkeypatch.chdir(elsewhere)
    result = pytester.runpytest_inprocess(
        "--rootdir=..", "-c../tox.ini", "-oamqp_trace=other", "../test_inner.py"
    )
    result.assert_outcomes(passed=1)
    assert (pytester.path / "other").is_dir()
    assert not list(elsewhere.iterdir())


def test_recordings_folder_does_not_follow_a_test_that_changes_directory(
    write_tests: WriteTests, folder: Path
) -> None:
    result = write_tests("""
        def test_it(monkeypatch, tmp_path, pika_channel):
            monkeypatch.chdir(tmp_path)
            assert False
    """).run("--amqp-trace=traces", failed=1)
    assert names(folder) == [f"test_inner-test_it.{ending}" for ending in FORMATS]
    result.stdout.fnmatch_lines([os.path.join("traces", "test_inner-test_it.html")])


# --- what goes wrong --------------------------------------------------------------------------------------


def test_recording_that_cannot_be_written_is_a_warning(write_tests: WriteTests) -> None:
    """The folder can be made when the run starts, and not any more when the first test ends."""
    result = write_tests(
        USES_A_BROKER
        + """
    def test_another(pika_channel):
        pass

    import pathlib, pytest

    @pytest.fixture(autouse=True)
    def taken():
        pathlib.Path("taken").write_text("")
    """
    ).run(
        f"--amqp-trace={os.path.join('taken', 'traces')}",
        "-W",
        "error",  # A warning of ours is no reason to fail, whatever is done with those of the tests.
        passed=2,
        warnings=2,
    )
    text = result.stdout.str()
    assert text.count("a recording cannot be written to") == 1, "all tests are listed with the one reason"
    result.stdout.fnmatch_lines(["*::test_it", "*::test_another", "*a recording cannot be written to*taken*"])


def test_no_file_is_ever_half_of_one(write_tests: WriteTests, folder: Path) -> None:
    result = write_tests("""
        @pytest.fixture(autouse=True)
        def breaks(monkeypatch):
            from fakeamqp.trace import Trace

            def half(self, path, **options):
                path.write_text("half of")
                raise RuntimeError("on purpose")

            monkeypatch.setattr(Trace, "jsonl", half)

        def test_it(pika_channel):
            pass
    """).run("--amqp-trace=traces", passed=1, warnings=1)
    assert names(folder) == ["test_inner-test_it.html", "test_inner-test_it.pcapng"]
    result.stdout.fnmatch_lines(["*a recording cannot be written to*: RuntimeError: on purpose*"])


def test_a_recording_of_an_earlier_run_is_replaced(write_tests: WriteTests, folder: Path) -> None:
    folder.mkdir()
    (folder / "test_inner-test_it.jsonl").write_text("of yesterday")
    write_tests(USES_A_BROKER).run("--amqp-trace=traces", passed=1)
    assert len(load(folder / "test_inner-test_it.jsonl")) > 5


def test_test_ended_by_keyboard_interrupt_is_recorded(write_tests: WriteTests, folder: Path) -> None:
    result = write_tests("""
        def test_it(pika_channel):
            pika_channel.queue_declare("orders")
            raise KeyboardInterrupt
    """).run_apart("--amqp-trace=traces")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "queue='orders'" in load(folder / "test_inner-test_it.jsonl").timeline()


def test_a_test_that_runs_again_does_not_replace_its_recording(
    write_tests: WriteTests, pytester: pytest.Pytester, folder: Path
) -> None:
    pytester.makeconftest(
        """
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            for turn in range(3):
                item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
                runtestprotocol(item, nextitem=nextitem)
                item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
                item._initrequest()
            return True
        """
    )
    write_tests(USES_A_BROKER).run("--amqp-trace=traces", "--amqp-trace-formats=jsonl", passed=3)
    assert names(folder) == [
        "test_inner-test_it.again-1.jsonl",
        "test_inner-test_it.again-2.jsonl",
        "test_inner-test_it.jsonl",
    ]


# --- names ------------------------------------------------------------------------------------------------

AWKWARD = [
    "x",
    "X",
    "a b",
    "a-b",
    "A B",
    "a/../b",
    "..",
    "",
    "CON",
    'a<b>c:d"e|f?g*h',
    "größe",
    "日本語",
    "x" * 500,
    "\0\n",
]
UNESCAPED = "disable_test_id_escaping_and_forfeit_all_rights_to_community_support"
AWKWARD_TESTS = f"""
    @pytest.mark.parametrize("value", {AWKWARD!r}, ids={AWKWARD!r})
    def test_it(amqp_broker, value):
        amqp_broker.publish(repr(value), routing_key="nowhere")
"""


@pytest.mark.parametrize("workers", [(), ("-n", "3")], ids=["alone", "xdist"])
def test_awkward_ids_get_safe_names_of_their_own(
    write_tests: WriteTests, folder: Path, workers: tuple[str, ...]
) -> None:
    options = "--amqp-trace=traces", "--amqp-trace-formats=jsonl"
    result = write_tests(AWKWARD_TESTS).run_apart(*options, *workers, f"-o{UNESCAPED}=1", passed=len(AWKWARD))
    said = f"AMQP recordings of {len(AWKWARD)} tests: {len(AWKWARD)} files in traces"
    assert said in result.stdout.lines, "workers tell how many they have written"
    found = names(folder)
    assert len({name.casefold() for name in found}) == len(AWKWARD)
    assert [name for name in found if "größe" in name] == ["test_inner-test_it-größe.jsonl"]
    for name in found:
        assert len(name.encode()) < 200
        assert not set(name) & set('<>:"/\\|?*[] \0\n') and name.isprintable()
    bodies = set()
    for path in folder.iterdir():
        events = [json.loads(line) for line in path.read_text().splitlines()[1:]]
        published = [event for event in events if event.get("event") == "published"]
        assert len(published) == 1
        bodies.add(str(published[0]))
    assert len(bodies) == len(AWKWARD)


def test_names_do_not_depend_on_the_worker_or_on_the_run(write_tests: WriteTests, folder: Path) -> None:
    options = "--amqp-trace=traces", "--amqp-trace-formats=jsonl"
    write_tests(AWKWARD_TESTS).run_apart(*options, passed=len(AWKWARD))
    alone = names(folder)
    write_tests(AWKWARD_TESTS).run_apart(*options, "-n", "3", passed=len(AWKWARD))
    assert names(folder) == alone


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        ("tests/test_a.py::test_b", "tests-test_a-test_b"),
        ("test_a.py::TestC::test_b[rabbitmq-4.2-True]", "test_a-TestC-test_b-rabbitmq-4-2-True"),
        ("docs/how.to.rst::how.to.rst", "docs-how-to-rst-how-to-rst"),
        ("../test_a.py::test_b", "test_a-test_b"),
        ("con.py", "_con"),
        ("COM1", "_COM1"),
        ("console.py", "console"),
        ("[]", "test"),
        ("test_a.py::test_b[\udc80]", "test_a-test_b"),
        ("test_a.py::test_b[o\u0308]", "test_a-test_b-ö"),
    ],
)
def test_file_name_contains_only_safe_characters_of_the_test_id(nodeid: str, name: str) -> None:
    assert file_name(nodeid) == name


def test_long_names_end_in_a_digest_and_stay_whole_characters() -> None:
    first, second = (file_name(f"test_a.py::test_b[{'日' * 200}{number}]") for number in range(2))
    assert first != second
    assert first[:-8] == second[:-8]
    assert len(first.encode()) <= 160 and "日" in first


def test_a_name_can_be_made_distinct() -> None:
    first, second = file_name("a.py::b[x y]", distinct=True), file_name("a.py::b[x-y]", distinct=True)
    assert first != second
    assert first.startswith("a-b-x-y-") and second.startswith("a-b-x-y-")
