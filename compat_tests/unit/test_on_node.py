"""Protocol tests on a node: what marks, lists and counts say. No node is started here."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from compat_tests.differential.differences import KINDS
from compat_tests.scripted import known_differences, needs
from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.scripted.known_differences import Difference, Results
from compat_tests.scripted.needs import Missing, WatchedServer
from compat_tests.scripted.node import NodeServer
from fakeamqp.model.personality import personality


def item(*marks: str, fixtures: tuple[str, ...] = (), **params: Any) -> Any:
    """As much of a test as is asked for its needs."""
    return SimpleNamespace(
        nodeid="test_it",
        fixturenames=fixtures,
        callspec=SimpleNamespace(params=params),
        iter_markers=lambda name: [pytest.mark.needs(*marks).mark],
    )


ASKED: list[tuple[Callable[[Server], object], str]] = [
    (lambda server: server.advance(1), "virtual time"),
    (lambda server: server.clock, "virtual time"),
    (lambda server: server.state.timers, "virtual time"),
    (lambda server: server.vhost, "inspection"),
    (lambda server: server.state.connections, "inspection"),
    (lambda server: server.client().connection.name, "inspection"),
    (lambda server: server.state.access, "settings"),
    (lambda server: Server(history=5), "settings"),
    (lambda server: server.restart(), "restart"),
    (lambda server: server.connect(host="10.0.0.1"), "addresses of peers"),
    (lambda server: server.varied(channel_max=5), "personality of choices"),
    (lambda server: Server("rabbitmq-4.0"), "personality rabbitmq-4.0"),
    (lambda server: Server("spec"), "personality spec"),
]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(Server, "on_node", WatchedServer)
    WatchedServer.watch("rabbitmq-4.3")
    return Server()


@pytest.mark.parametrize(("ask", "need"), ASKED)
def test_watched_server_notes_what_a_test_asks_for(
    watched: Server, ask: Callable[[Server], object], need: str
) -> None:
    ask(watched)
    assert need in WatchedServer.asked


def test_conversation_of_a_client_asks_for_nothing(watched: Server) -> None:
    client = watched.client()
    client.declare("q")
    client.fill("q", b"1")
    assert client.empty("q") == [b"1"]
    client.drop()
    assert client.closed and watched.state.personality.name == "rabbitmq-4.3"
    assert WatchedServer.asked == set() and WatchedServer.used


@pytest.mark.parametrize(("ask", "need"), [each for each in ASKED if "client()" not in str(each)])
def test_test_without_mark_that_asks_a_node_for_more_fails_with_the_mark_it_wants(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[Server], object], need: str
) -> None:
    node = SimpleNamespace(personality=personality("rabbitmq-4.3"), reset=lambda: None, login={})
    monkeypatch.setattr(NodeServer, "node", node, raising=False)
    monkeypatch.setattr(NodeServer, "client", lambda server: SimpleNamespace(connection=server.state))
    monkeypatch.setattr(Server, "on_node", NodeServer)
    with pytest.raises(Missing, match=rf'@pytest.mark.needs\("{need}"\)'):
        ask(Server())


def test_mark_that_names_nothing_asked_for_is_untrue(watched: Server) -> None:
    watched.client()
    assert needs.untrue(item(), ["virtual time"]) == ["virtual time"]
    watched.advance(1)
    assert needs.untrue(item(), ["virtual time"]) == []
    assert needs.untrue(item(), ["virtual time", "restart"]) == []
    assert needs.untrue(item(), ["restart"]) == ["restart"]


def test_needs_come_from_marks_fixtures_and_parameters() -> None:
    test = item("restart", fixtures=("spec", "caplog"), name="rabbitmq-4.0", version="4.2", text="4.25")
    assert needs.needs_of(test) == [
        "restart",
        "personality spec",
        "inspection",
        "personality rabbitmq-4.0",
        "personality rabbitmq-4.2",
    ]
    assert needs.unmet(item(name="rabbitmq-4.0"), "rabbitmq-4.0") == []
    assert needs.unmet(item(name="rabbitmq-4.0"), "rabbitmq-4.3") == ["personality rabbitmq-4.0"]


@pytest.mark.parametrize(
    ("need", "meant"),
    [("virtual tim", "virtual time"), ("personality rabbitmq-4,3", "personality rabbitmq-4.3")],
)
def test_unknown_need_is_an_error_with_the_nearest_known_need(
    pytester: pytest.Pytester, need: str, meant: str
) -> None:
    pytester.makepyfile(f"import pytest\n@pytest.mark.needs({need!r})\ndef test_it(): pass")
    result = pytester.runpytest_inprocess("-p", "compat_tests.scripted.on_node", "-p", "no:cacheprovider")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*test_it: needs({need!r}) is not known; did you mean {meant!r}?*"])


def test_unknown_rabbitmq_is_an_error_with_the_nearest_known_one(pytester: pytest.Pytester) -> None:
    options = ("-p", "compat_tests.scripted.on_node", "--on", "rabbitmq-4.4")
    result = pytester.runpytest_inprocess(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--on rabbitmq-4.4: *; did you mean 'rabbitmq-4.*'?*"])


def test_entry_covers_one_case_all_cases_or_those_of_a_pattern() -> None:
    entry = Difference(("test_a.py::test_all", "test_a.py::test_one[x-*]"), "defect", "", "", ("4.3",))
    assert entry.covers("test_a.py::test_all") and entry.covers("test_a.py::test_all[y]")
    assert entry.covers("test_a.py::test_one[x-1]")
    assert not entry.covers("test_a.py::test_one[y-1]") and not entry.covers("test_b.py::test_all")


def test_each_listed_difference_names_a_test_and_says_why() -> None:
    tests = known_differences.FOLDER.parent / "amqp_0_9_1"
    for entry in known_differences.entries():
        assert entry.kind in KINDS and entry.rabbitmq and len(entry.reason) > 10, entry
        assert len({each.partition("::")[0] for each in entry.tests}) >= 1
        for each in entry.tests:
            file, _, name = each.partition("[")[0].partition("::")
            tree = ast.parse((tests / file).read_text(encoding="utf-8"))
            names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
            assert name.rpartition("::")[2] in names, each


def report(outcome: str, reason: str = "", **more: Any) -> Any:
    return SimpleNamespace(outcome=outcome, longrepr=("file", 1, reason) if reason else None, **more)


def test_results_count_outcomes_of_what_ran_and_needs_of_what_did_not() -> None:
    results = Results()
    for each in (
        report("passed"),
        report("failed"),
        report("skipped", wasxfail="why"),
        report("passed", wasxfail="sometimes"),
        report("skipped", "Skipped: not here"),
        report("skipped", "Skipped: needs virtual time, restart"),
    ):
        results.count(each)
    assert results.outcomes == {"passed": 2, "failed": 1, "different": 1, "skipped": 1}
    assert results.skipped == {"virtual time": 1}
    assert str(results).startswith("4 ran: 1 different, 1 failed, 2 passed, 1 skipped; 1 were skipped: ")
