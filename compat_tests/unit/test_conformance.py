"""The catalogue of rules, the marks of tests, and the report made from both."""

from __future__ import annotations

import gc
from pathlib import Path
from textwrap import dedent

import pytest

from compat_tests.tools.blanking import excused_tests, passing_without_deliveries
from compat_tests.tools.conformance import (
    COMPLETE,
    PROTOCOLS,
    Catalogue,
    Results,
    marked_rules,
    marks_in,
    pages,
    read_catalogue,
    read_catalogues,
    report,
    unknown,
)
from compat_tests.tools.evidence import gathering
from fakeamqp.protocols.amqp_0_9_1.codec.tables import encode_short_string

TESTS = Path(__file__).parents[1]
CATALOGUE = """
[[rule]]
id = "0-9-1/queue.declare/first"
level = "MUST"
testable = "wire"
summary = "One."
[[rule]]
id = "0-9-1/queue.declare/second"
level = "MAY"
testable = "functional"
summary = "Two."
[[rule]]
id = "0-9-1/queue/third"
level = "MUST"
testable = "not-observable"
summary = "Three."
"""
EXCEPTIONS = """
[[exception]]
id = "0-9-1/queue/third"
reason = "Nobody sees it."
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "amqp-0-9-1.toml").write_text(CATALOGUE)
    (tmp_path / "exceptions-0-9-1.toml").write_text(EXCEPTIONS)
    return tmp_path


# --- the project's own rules ---------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", sorted(COMPLETE))
def test_every_rule_has_a_test_or_an_exception(protocol: str) -> None:
    catalogue = read_catalogue(protocol)
    marked = marked_rules(TESTS, catalogue)
    missing = [
        rule.id
        for rule in catalogue.rules.values()
        if rule.id not in marked and rule.id not in catalogue.exceptions
    ]
    assert not missing, f"{len(missing)} rules have neither a test nor an exception:\n" + "\n".join(missing)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_rule_has_both_a_test_and_an_exception(protocol: str) -> None:
    catalogue = read_catalogue(protocol)
    both = sorted(set(catalogue.exceptions) & set(marked_rules(TESTS, catalogue)))
    assert not both, "these have tests, so their exceptions must go:\n" + "\n".join(both)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reason_of_every_exception_is_a_sentence(protocol: str) -> None:
    for id_, reason in read_catalogue(protocol).exceptions.items():
        assert len(reason) > 20, id_
        assert reason.endswith("."), id_


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_rule_id_begins_with_its_protocol(protocol: str) -> None:
    rules = read_catalogue(protocol).rules
    assert rules and all(rule.startswith(f"{protocol}/") for rule in rules)


# --- reading -------------------------------------------------------------------------------------------


def test_rule_marks_are_found_in_decorators_parameters_classes_and_modules() -> None:
    source = """
    import pytest
    rule = pytest.mark.rule
    pytestmark = [pytest.mark.rule("a")]
    @rule("b")
    @pytest.mark.parametrize("x", [pytest.param(1, marks=[rule("c"), pytest.mark.rule("d")])])
    def test(x): unruly("e"); "rule('f')"
    class TestIt:
        @pytest.mark.rule("g")
        async def test(self): ...
    """
    assert sorted(id_ for id_, _ in marks_in(dedent(source))) == ["a", "b", "c", "d", "g"]


def test_rule_id_in_f_string_is_found_only_for_known_rules() -> None:
    source = """
    @pytest.mark.parametrize("x", [pytest.param(x, marks=rule(f"0-9-1/{x}/b")) for x in ("a", "nothing")])
    def test(x): ...
    """
    assert list(marks_in(dedent(source), ["0-9-1/a/b", "0-9-1/other/b"])) == [("0-9-1/a/b", ())]


def test_rule_id_in_f_string_may_include_clause() -> None:
    source = """
    @pytest.mark.parametrize("x", [pytest.param(x, marks=rule(f"0-9-1/a/{x}")) for x in ("b#one", "no#one")])
    def test(x): ...
    """
    assert list(marks_in(dedent(source), ["0-9-1/a/b"])) == [("0-9-1/a/b#one", ())]


def test_rule_mark_carries_protocols_of_its_test_or_module() -> None:
    source = """
    pytestmark = [pytest.mark.slow, pytest.mark.protocols("0-9-1", "0-9")]
    @rule("a")
    def test_a(): ...
    @rule("b")
    @pytest.mark.protocols("0-9-1")
    def test_b(): ...
    @pytest.mark.parametrize("x", [pytest.param(1, marks=[rule("c"), pytest.mark.protocols("0-9-1")])])
    def test_c(x): ...
    """
    both = ("0-9-1", "0-9")
    assert list(marks_in(dedent(source))) == [("a", both), ("b", ("0-9-1",)), ("c", both)]


def test_unknown_rule_id_is_reported_with_nearest_id(folder: Path) -> None:
    catalogue = read_catalogue(folder=folder)
    assert catalogue.unknown(["0-9-1/queue.declare/first", "0-9-1/queue.declare/frist", "x"]) == [
        "no rule '0-9-1/queue.declare/frist'; did you mean '0-9-1/queue.declare/first'?",
        "no rule 'x'",
    ]


def test_rule_id_is_looked_up_in_catalogue_of_its_protocol() -> None:
    catalogues = read_catalogues()
    assert list(catalogues) == list(PROTOCOLS)
    assert unknown(catalogues, ["0-10/frame/layout", "0-9-1/frame/layout"]) == []
    assert unknown(catalogues, ["0-10/frame/lay-out", "0-8/frame/layout"]) == [
        "no rule '0-10/frame/lay-out'; did you mean '0-10/frame/layout'?",
        "no rule '0-8/frame/layout'; an id begins with 0-9-1 or 0-9 or 0-10 or 1-0",
    ]


def test_exception_for_unknown_rule_is_refused(folder: Path) -> None:
    (folder / "exceptions-0-9-1.toml").write_text(EXCEPTIONS.replace("third", "thrid"))
    with pytest.raises(ValueError, match="did you mean '0-9-1/queue/third'"):
        read_catalogue(folder=folder)


@pytest.mark.parametrize("name", ["amqp", "exceptions"])
def test_duplicate_rule_or_exception_id_is_refused(folder: Path, name: str) -> None:
    path = folder / f"{name}-0-9-1.toml"
    path.write_text(path.read_text() * 2)
    with pytest.raises(ValueError, match="is there twice"):
        read_catalogue(folder=folder)


# --- protocols that share rules -------------------------------------------------------------------------

SHARED = """
[[rule]]
id = "0-9/queue.declare/first"
level = "MUST"
testable = "wire"
summary = "One."
same_as = "0-9-1/queue.declare/first"
[[rule]]
id = "0-9/queue/third"
level = "MUST"
testable = "not-observable"
summary = "Three."
same_as = "0-9-1/queue/third"
[[rule]]
id = "0-9/queue/own"
level = "MAY"
testable = "wire"
summary = "Own."
wip = true
"""


@pytest.fixture
def shared(folder: Path) -> Catalogue:
    (folder / "amqp-0-9.toml").write_text(SHARED)
    return read_catalogue("0-9", folder)


def test_rule_is_found_by_id_of_same_rule_in_another_protocol(shared: Catalogue) -> None:
    assert shared.same("0-9-1/queue.declare/first") == ["0-9/queue.declare/first"]
    assert shared.same("0-9/queue.declare/first") == ["0-9/queue.declare/first"]
    assert shared.same("0-9-1/queue.declare/second") == []


def test_exception_counts_for_same_rule_of_another_protocol(shared: Catalogue) -> None:
    assert shared.exceptions == {"0-9/queue/third": "Nobody sees it."}


@pytest.mark.parametrize(
    ("place", "decorator", "counts"),
    [
        ("protocol/amqp_0_9_1/test_a.py", "", True),
        ("protocol/amqp_0_9_1/test_a.py", '@pytest.mark.protocols("0-9-1")\n', False),
        ("unit/test_a.py", "", False),
        ("unit/test_a.py", '@pytest.mark.protocols("0-9-1", "0-9")\n', True),
    ],
)
def test_rule_mark_counts_for_protocols_of_its_test(
    shared: Catalogue, tmp_path: Path, place: str, decorator: str, counts: bool
) -> None:
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).write_text(f'{decorator}@rule("0-9-1/queue.declare/first")\ndef test(): ...\n')
    assert marked_rules(tmp_path, shared) == ({"0-9/queue.declare/first": {place}} if counts else {})
    own = read_catalogue(folder=tmp_path)
    assert marked_rules(tmp_path, own) == {"0-9-1/queue.declare/first": {place}}


def test_rule_in_progress_is_marked_and_counted_in_separate_line(shared: Catalogue) -> None:
    results = Results()
    results.add("0-9/queue/own", "test_a.py::test", "passed")
    text = report(shared, results)
    assert "| `own` *wip* | MAY | passing | both | test_a.py::test |" in text
    assert "| *work in progress* | 1 | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 |" in text
    assert "| **all** | 3 | 1 | 1 | 0 | 0 | 0 | 0 | 1 | 1 |" in text


def test_report_without_rules_in_progress_does_not_mention_them(folder: Path) -> None:
    assert "in progress" not in report(read_catalogue(folder=folder), Results())


# --- writing -------------------------------------------------------------------------------------------


def test_report_counts_rules_by_section_and_lists_uncovered_rules(folder: Path) -> None:
    results = Results()
    results.add("0-9-1/queue.declare/first", "test_a.py::test", "passed")
    text = report(read_catalogue(folder=folder), results)
    assert "| MUST | 2 | 1 | 1 | 0 | 0 | 0 | 0 | 1 | 0 |" in text
    assert "| **all** | 3 | 1 | 1 | 0 | 0 | 0 | 0 | 1 | 1 |" in text
    assert "| queue.declare | 2 | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 1 |" in text
    assert "## Not yet covered\n\n- `0-9-1/queue.declare/second`: Two.\n" in text
    assert "## Failing\n\nNone.\n" in text
    assert "- `0-9-1/queue/third`: Three. *Nobody sees it.*" in text
    assert "| `first` | MUST | passing | both | test_a.py::test |" in text


def test_each_protocol_has_page_with_its_report_and_row_in_overview() -> None:
    catalogues = read_catalogues()
    path = Path("docs/report.md")
    made = pages(catalogues.values(), Results(), path)
    own = {protocol: Path(f"docs/report-{protocol}.md") for protocol in PROTOCOLS}
    assert list(made) == [path, *own.values()]
    assert {protocol: made[own[protocol]] for protocol in PROTOCOLS} == {
        protocol: report(catalogues[protocol], Results()) for protocol in PROTOCOLS
    }
    assert all(
        f"| [{protocol}]({own[protocol].name}) | {len(catalogues[protocol].rules)} |" in made[path]
        for protocol in PROTOCOLS
    )


def test_rule_fails_when_one_of_its_tests_fails(folder: Path) -> None:
    results = Results()
    for test, outcome in (("a", "passed"), ("b", "passed"), ("b", "failed"), ("b", "passed")):
        results.add("0-9-1/queue.declare/first", test, outcome)
    catalogue = read_catalogue(folder=folder)
    assert results.state(catalogue, "0-9-1/queue.declare/first") == "failing"
    assert "## Failing\n\n- `0-9-1/queue.declare/first`: One.\n  - b\n" in report(catalogue, results)


def test_rule_with_only_skipped_tests_is_not_covered(folder: Path) -> None:
    results = Results()
    results.add("0-9-1/queue.declare/first", "a", "skipped")
    catalogue = read_catalogue(folder=folder)
    assert results.state(catalogue, "0-9-1/queue.declare/first") == "not yet"
    results.add("0-9-1/queue.declare/first", "a", "passed")
    assert results.state(catalogue, "0-9-1/queue.declare/first") == "passing"


# --- the plugin ----------------------------------------------------------------------------------------

INNER = """
import pytest
from compat_tests.scripted.amqp_0_9_1 import Server
rule = pytest.mark.rule

@rule("0-9-1/frame/layout")
@pytest.mark.parametrize("number", [1, pytest.param(2, marks=rule("0-9-1/frame/type-body"))])
def test_passes(number): assert Server("rabbitmq-4.3").client().closed is False

@rule("0-9-1/frame/type-header")
def test_fails(): assert 0

@pytest.fixture
def broken(): raise RuntimeError

@rule("0-9-1/frame/type-method")
def test_errors(broken): pass

@rule("0-9-1/frame/type-heartbeat")
@pytest.mark.skip
def test_is_skipped(): pass
"""


@pytest.fixture(autouse=True)
def only_needed_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inner runs load no more than they need: that is where their time went."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(TESTS.parent))  # for the workers of xdist


def run(pytester: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(test_inner=source)
    return pytester.runpytest_inprocess(
        "-p", "compat_tests.tools.conformance_plugin", "-p", "no:cacheprovider", *arguments
    )


@pytest.mark.parametrize("spread", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"])
def test_run_with_option_writes_conformance_report(
    pytester: pytest.Pytester, spread: tuple[str, ...]
) -> None:
    result = run(pytester, INNER, "--conformance", "docs/report.md", *spread)
    result.assert_outcomes(passed=2, failed=1, errors=1, skipped=1)
    text = (pytester.path / "docs/report-0-9-1.md").read_text()
    assert "| `layout` | SEMANTIC | passing | rabbitmq-4.3 | test_inner.py::test_passes |" in text
    assert "| `type-body` | SEMANTIC | passing | rabbitmq-4.3 | test_inner.py::test_passes |" in text
    assert "| `type-header` | SEMANTIC | **failing** |  | test_inner.py::test_fails |" in text
    assert "| `type-method` | SEMANTIC | **failing** |  | test_inner.py::test_errors |" in text
    assert "| `type-heartbeat` | SEMANTIC | **not yet** |  | test_inner.py::test_is_skipped |" in text
    result.stdout.fnmatch_lines(
        [
            "conformance to 0-9-1: 2 of * rules pass, * 2 fail, *",
            "conformance to 0-9: 0 of * rules pass, *",
            "conformance to 0-10: 0 of * rules pass, *",
        ]
    )


TWICE = """
import pytest
from compat_tests.scripted.amqp_0_9_1 import Server
client = Server("rabbitmq-4.3").client
rule = pytest.mark.rule

@pytest.mark.parametrize("protocol", ["0-9-1", "0-9"])
@rule("0-9-1/frame/layout", "0-9-1/frame/type-body", "0-9/frame/type-trace")
def test_over_each(protocol): assert client() and protocol == "0-9-1"

@pytest.mark.protocols("0-9-1", "0-9")
@rule("0-9-1/frame/type-header")
def test_for_both(): assert client()

@rule("0-9-1/frame/type-method")
def test_for_one(): assert client()

@rule("0-9/frame/type-oob-body")
def test_for_the_other(): assert client()
"""


def test_result_counts_only_for_rules_of_protocol_the_test_runs_over(pytester: pytest.Pytester) -> None:
    run(pytester, TWICE, "--conformance", "report.md")
    states: dict[str, dict[str, str]] = {}
    for protocol in ("0-9-1", "0-9"):
        for line in (pytester.path / f"report-{protocol}.md").read_text().splitlines():
            if line.endswith(" |") and "test_inner" in line:
                name, _, state, *_ = line.strip("| ").split(" | ")
                states.setdefault(protocol, {})[name] = state
    assert states == {
        "0-9-1": {
            "`layout`": "passing",
            "`type-body`": "passing",
            "`type-header`": "passing",
            "`type-method`": "passing",
        },
        "0-9": {
            "`layout`": "**failing**",
            "`type-body`": "**failing**",
            "`type-trace`": "**failing**",
            "`type-header`": "passing",
            "`type-oob-body`": "passing",
        },
    }


SHOWING = """
import pytest
from compat_tests.scripted.amqp_0_9_1 import Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
rule, deviates = pytest.mark.rule, pytest.mark.deviates

@pytest.fixture
def client(): return Server("spec").client()

@rule("0-9-1/frame/layout")
def test_fixtures_alone(client): assert client

@rule("0-9-1/frame/type-body")
def test_no_assertion(client): client.send(m.QueueDeclare(queue="q"))

def declared(client): assert client.declare_ok("q").queue == "q"

@rule("0-9-1/frame/type-header")
def test_a_helper_that_asserts(client): declared(client)

@rule("0-9-1/frame/type-method")
def test_a_driver_that_asserts(client): client.call(m.ChannelFlow(active=True), m.ChannelFlowOk)

@rule("0-9-1/frame/type-heartbeat")
def test_the_codec_alone(): assert m.QueueDeclareOk("q", 1, 2).encode()[4:6] == b"\\x01q"

@rule("0-9-1/frame/unknown-type")
@pytest.mark.parametrize("name", ["spec", "rabbitmq-4.3"])
def test_both(name): assert Server(name).client()

@rule("0-9-1/frame/bad-frame-end")
@deviates("0-9-1/frame/bad-frame-end")
@pytest.mark.parametrize("name", ["spec", "rabbitmq-4.3"])
def test_spec_does_and_the_default_does_not(name): assert Server(name).client()

@deviates("0-9-1/content/sender-abort")
def test_nobody_does(client): declared(client)

@rule("0-9-1/channel/not-open")
def test_older_ones_do(): assert Server("rabbitmq-4.0").client()

@rule("0-9-1/channel.open/state")
def test_with_another_choice(): assert Server("rabbitmq-4.3").varied(smallest_frame_max=4096).client()

@rule("0-9-1/channel.open/above-channel-max")
def test_with_another_limit(): assert Server("rabbitmq-4.3").varied(largest_message=5).client()
"""


def rows_of(pytester: pytest.Pytester) -> dict[str, tuple[str, str, str]]:
    """By test: state, personalities and note."""
    text = (pytester.path / "report-0-9-1.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if "| test_inner.py::" in line]
    tests = [(row[2:4], row[4].removeprefix("test_inner.py::").partition(" (")) for row in rows]
    return {name: (state, holds, note.rstrip(")")) for (state, holds), (name, _, note) in tests}


def test_report_has_state_and_personalities_shown_by_each_test(pytester: pytest.Pytester) -> None:
    run(pytester, SHOWING, "--conformance", "report.md")
    assert rows_of(pytester) == {
        "test_fixtures_alone": ("**not yet**", "", "shows nothing"),
        "test_no_assertion": ("**not yet**", "", "shows nothing"),
        "test_a_helper_that_asserts": ("**spec only**", "spec", ""),
        "test_a_driver_that_asserts": ("**spec only**", "spec", ""),
        "test_the_codec_alone": ("passing", "codec", ""),
        "test_both": ("passing", "both", ""),
        "test_spec_does_and_the_default_does_not": ("**deviating**", "spec", "deviates"),
        "test_nobody_does": ("**held by none**", "", "deviates"),
        "test_older_ones_do": ("passing", "rabbitmq-4.0", ""),
        "test_with_another_choice": ("**spec only**", "rabbitmq-4.3*", ""),
        "test_with_another_limit": ("passing", "rabbitmq-4.3", ""),
    }
    text = (pytester.path / "report-0-9-1.md").read_text()
    assert (
        "## Tests that show nothing\n\n- test_inner.py::test_fixtures_alone\n- test_inner.py::test_no_a"
        in text
    )


def test_blank_option_makes_every_test_show_no_evidence(pytester: pytest.Pytester) -> None:
    result = run(pytester, SHOWING, "--conformance", "report.md", "--blank")
    result.assert_outcomes(passed=13)
    assert {(state, note) for state, _, note in rows_of(pytester).values()} == {
        ("**not yet**", "shows nothing"),
        ("**not yet**", "deviates; shows nothing"),
    }


LOOKING_AWAY = """
import pytest
from compat_tests.scripted.amqp_0_9_1 import Server
rule = pytest.mark.rule

def got(count):
    client = Server("spec").client()
    client.declare("q")
    client.consume("q")
    client.fill("q", *[b"m"] * count)
    return client.bodies()

@rule("0-9-1/basic/08")
def test_looks(): assert got(2) == [b"m"] * 2

@rule("0-9-1/basic/08")
def test_looks_away(): assert all(body == b"m" for body in got(2))

@rule("0-9-1/frame/layout")
def test_is_not_about_deliveries(): assert got(0) == []

def test_has_no_rule(): assert not got(1)
"""


def test_mute_option_runs_only_rule_tests_and_fails_those_checking_deliveries(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_inner=LOOKING_AWAY)
    result = pytester.runpytest_subprocess(
        *("-p", "compat_tests.tools.conformance_plugin", "-p", "no:cacheprovider"),
        *("--conformance", "report.md", "--mute"),
    )
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines("FAILED test_inner.py::test_looks - *")


def test_delivery_rule_tests_that_pass_without_deliveries_are_listed() -> None:
    results = Results()
    (first, *_) = excused = sorted(excused_tests())
    deliveries, others = "0-9-1/basic/08", "0-9-1/frame/layout"
    results.add(deliveries, "a", "passed")
    results.add(deliveries, "b", "failed")
    results.add(deliveries, "c", "passed", kind="code")
    results.add(deliveries, first, "passed")
    results.add(others, "d", "passed")
    assert passing_without_deliveries(results) == [f"{deliveries}: a"]
    results.add(deliveries, excused[1], "failed")
    assert passing_without_deliveries(results) == [f"{deliveries}: a", f"excused without need: {excused[1]}"]


def test_codec_use_by_garbage_collected_finalizer_is_not_evidence() -> None:
    class Left:
        def __init__(self) -> None:
            self.myself = self

        def __del__(self) -> None:
            encode_short_string("of an earlier test")

    Left()
    with gathering() as evidence:
        gc.collect()
    assert evidence.kind == ""
    with gathering() as evidence:
        encode_short_string("of this one")
    assert evidence.kind == "code"


# --- clauses -------------------------------------------------------------------------------------------

CLAUSES = """
["0-9-1/queue.declare/first"]
one = "One thing."
other = "Another."
"""


@pytest.fixture
def divided(folder: Path) -> Catalogue:
    (folder / "clauses.toml").write_text(CLAUSES)
    return read_catalogue(folder=folder)


def test_rule_with_clauses_is_covered_in_part_until_each_clause_has_test(divided: Catalogue) -> None:
    results = Results()
    rule = "0-9-1/queue.declare/first"
    results.add(f"{rule}#one", "a", "passed")
    assert results.state(divided, rule) == "in part"
    text = report(divided, results)
    assert f"## Covered in part\n\n- `{rule}`: One.\n  - no test: Another.\n" in text
    results.add(f"{rule}#other", "b", "empty")
    assert results.state(divided, rule) == "in part"
    results.add(f"{rule}#other", "b", "passed")
    assert results.state(divided, rule) == "in part", "one case of this test showed nothing"
    results.add(f"{rule}#other", "c", "passed")
    assert results.state(divided, rule) == "passing"
    assert "| both | a (one)<br>b (other; shows nothing)<br>c (other) |" in report(divided, results)


def test_rule_held_by_no_personality_has_separate_state(divided: Catalogue) -> None:
    results = Results()
    rule = "0-9-1/queue.declare/second"
    results.add(rule, "a", "passed", deviates=True, personalities=["rabbitmq-4.3"])
    assert results.state(divided, rule) == "deviating", "nothing shows what spec does"
    results.add(rule, "b", "passed", deviates=True, personalities=["spec*"])
    assert results.state(divided, rule) == "held by none"
    text = report(divided, results)
    assert "## Deviating\n\nNone.\n" in text
    assert f"## Held by no personality\n\n- `{rule}`: Two.\n  - a\n  - b\n" in text
    assert "| MAY | 1 | 1 | 0 | 0 | 1 | 0 | 0 | 0 | 0 |" in text
    results.add(rule, "c", "passed", personalities=["rabbitmq-4.0"])
    assert results.state(divided, rule) == "deviating"


def test_rule_with_clause_held_by_no_personality_is_held_by_no_personality(divided: Catalogue) -> None:
    results = Results()
    rule = "0-9-1/queue.declare/first"
    results.add(f"{rule}#one", "a", "passed")
    results.add(f"{rule}#other", "b", "passed", deviates=True)
    assert results.state(divided, rule) == "held by none"
    assert f"- `{rule}`: One.\n  - not held: Another.\n  - b\n" in report(divided, results)
    results.add(f"{rule}#other", "c", "passed", personalities=["rabbitmq-4.0"])
    assert results.state(divided, rule) == "deviating"


def test_mark_without_or_with_unknown_clause_is_reported(divided: Catalogue) -> None:
    rule = "0-9-1/queue.declare/first"
    assert divided.unknown([rule, f"{rule}#one", f"{rule}#two", "0-9-1/queue.declare/second#x"]) == [
        f"rule '{rule}' says several things; name one: {rule}#one|other",
        f"rule '{rule}' has no clause 'two': it has one, other",
        "rule '0-9-1/queue.declare/second' has no clause 'x': it has none in spec/rules/clauses.toml",
    ]


def test_same_rule_of_another_protocol_has_same_clauses(divided: Catalogue, folder: Path) -> None:
    (folder / "amqp-0-9.toml").write_text(SHARED)
    other = read_catalogue("0-9", folder)
    assert other.clauses == {"0-9/queue.declare/first": {"one": "One thing.", "other": "Another."}}
    assert other.same("0-9-1/queue.declare/first#one") == ["0-9/queue.declare/first#one"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_clause_has_a_test(protocol: str) -> None:
    catalogue = read_catalogue(protocol)
    known = {rule for each in PROTOCOLS for rule in read_catalogue(each).rules}
    named = {
        same
        for path in TESTS.rglob("test_*.py")
        for id_, _ in marks_in(path.read_text(encoding="utf-8"), known)
        for same in catalogue.same(id_)
    }
    clauses = [f"{rule}#{clause}" for rule, names in catalogue.clauses.items() for clause in names]
    assert not [clause for clause in clauses if clause not in named]


def test_report_does_not_depend_on_order_of_tests(pytester: pytest.Pytester) -> None:
    texts = []
    for order in ("test_a", "test_b"), ("test_b", "test_a"):
        source = "import pytest\nmark = pytest.mark.rule('0-9-1/frame/layout')\n"
        source += "".join(f"@mark\ndef {name}(): pass\n" for name in order)
        run(pytester, source, "--conformance", "report.md")
        texts.append((pytester.path / "report-0-9-1.md").read_text())
    assert texts[0] == texts[1]


def test_run_without_conformance_option_writes_no_report(pytester: pytest.Pytester) -> None:
    run(pytester, INNER)
    assert not list(pytester.path.rglob("*.md"))


def test_mark_with_unknown_rule_id_stops_run(pytester: pytest.Pytester) -> None:
    result = run(pytester, "import pytest\n@pytest.mark.rule('0-9-1/frame/lay-out')\ndef test(): pass")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        "*test_inner.py::test: no rule '0-9-1/frame/lay-out'; did you mean '0-9-1/frame/layout'?"
    )
