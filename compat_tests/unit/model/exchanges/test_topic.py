"""Topic patterns: what they match, and how much work a match takes."""

from __future__ import annotations

from itertools import groupby

from hypothesis import example, given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.tools.work import work
from fakeamqp.model.exchanges import topic_matches
from fakeamqp.model.exchanges.topic import TopicTrie


def reference(pattern: list[str], key: list[str]) -> bool:
    """The sentence of the documents, word by word: slow, and plainly right."""
    if not pattern:
        return not key
    first, rest = pattern[0], pattern[1:]
    if first == "#":
        return any(reference(rest, key[skipped:]) for skipped in range(len(key) + 1))
    return bool(key) and first in ("*", key[0]) and reference(rest, key[1:])


def words(text: str) -> list[str]:
    return text.split(".") if text else []


def plain(pattern: str) -> str:
    """The pattern with one `#` for consecutive ones: it matches the same, and is the same to a trie."""
    return ".".join(
        word for word, run in groupby(words(pattern)) for _ in range(1 if word == "#" else len([*run]))
    )


PATTERN_WORDS = st.sampled_from(["a", "b", "A", "", "*", "#", "a*", "é"])
KEY_WORDS = st.sampled_from(["a", "b", "A", "", "é", "ab"])
PATTERNS = st.lists(PATTERN_WORDS, max_size=6).map(".".join)
KEYS = st.lists(KEY_WORDS, max_size=6).map(".".join)


@examples(500)
@given(PATTERNS, KEYS)
def test_topic_pattern_matches_like_documented_rule(pattern: str, key: str) -> None:
    assert topic_matches(pattern, key) == reference(words(pattern), words(key))


@examples(300)
@example(changes=[("add", "a.#.#", 1), ("remove", "a.#", 1)], keys=["a"])
@given(
    st.lists(st.tuples(st.sampled_from(["add", "remove"]), PATTERNS, st.integers(0, 3)), max_size=25),
    st.lists(KEYS, min_size=1, max_size=5),
)
def test_topic_trie_matches_like_list_of_patterns(
    changes: list[tuple[str, str, int]], keys: list[str]
) -> None:
    trie: TopicTrie[int] = TopicTrie()
    filed: set[tuple[str, int]] = set()
    for change, pattern, item in changes:
        if change == "add":
            trie.add(pattern, item)
            filed.add((plain(pattern), item))
        else:
            trie.remove(pattern, item)
            filed.discard((plain(pattern), item))
    for key in keys:
        found = list(trie.match(key))
        assert len(found) == len(set(found)), "each item comes once"
        assert set(found) == {item for pattern, item in filed if reference(words(pattern), words(key))}


@given(st.lists(PATTERNS, max_size=20))
def test_removing_all_patterns_leaves_trie_empty(patterns: list[str]) -> None:
    trie: TopicTrie[int] = TopicTrie()
    for pattern in patterns:
        trie.add(pattern, 1)
    for pattern in patterns:
        trie.remove(pattern, 1)
    assert not trie._root.children
    assert not trie._root.items


def test_removing_pattern_keeps_patterns_with_shared_words() -> None:
    trie: TopicTrie[str] = TopicTrie()
    for pattern in ("a", "a.b", "a.b.c"):
        trie.add(pattern, pattern)
    trie.remove("a.b", "a.b")
    trie.remove("a.b.x", "never there")
    trie.remove("a.b.c", "another item")
    assert [list(trie.match(key)) for key in ("a", "a.b", "a.b.c")] == [["a"], [], ["a.b.c"]]


def test_order_of_topic_matches_is_deterministic() -> None:
    found = []
    for _ in range(2):
        trie: TopicTrie[str] = TopicTrie()
        for pattern in ("#", "a.*", "*.b", "a.#", "a.b"):
            trie.add(pattern, pattern)
        found.append(list(trie.match("a.b")))
    assert found[0] == found[1]
    assert sorted(found[0]) == sorted(("#", "a.*", "*.b", "a.#", "a.b"))


def test_matching_pattern_with_many_hashes_ends_quickly() -> None:
    trie: TopicTrie[int] = TopicTrie()
    trie.add(".".join(["#", "a"] * 15 + ["z"]), 1)
    key = ".".join(["a"] * 60)
    assert not list(trie.match(key)), "trying every way to place the hashes would never end"
    assert list(trie.match(key + ".z")) == [1]


def test_match_work_grows_linearly_with_key_length_for_many_hashes() -> None:
    trie: TopicTrie[int] = TopicTrie()
    trie.add("#.a.#.a.#.a.z", 1)
    few, many = (work(lambda: list(trie.match(".".join("a" * words)))) for words in (30, 120))  # noqa: B023
    assert many < 4.6 * few


def test_match_work_hardly_grows_with_number_of_patterns() -> None:
    def matching(patterns: int) -> int:
        trie: TopicTrie[int] = TopicTrie()
        for number in range(patterns):
            trie.add(".".join(["#", "a"] * 40 + ["#", str(number)]), number)
        key = ".".join("a" * 122)
        assert list(trie.match(f"{key}.7")) == [7]
        return work(lambda: list(trie.match(key)))

    few, many = matching(8), matching(190)
    assert many < 2 * few
    assert many < 20 * 122


def test_topic_matches_come_in_order_of_addition() -> None:
    patterns = ["#", "a.*", "#.b", "*.b", "a.#", "a.#.b", "a.b", "#.a.#.b"]
    for order in (patterns, patterns[::-1]):
        trie: TopicTrie[str] = TopicTrie()
        for pattern in order:
            trie.add(pattern, pattern)
        assert list(trie.match("a.b")) == order


def test_removed_patterns_leave_no_places_in_the_automaton() -> None:
    trie: TopicTrie[int] = TopicTrie()
    trie.add("#.stays", 0)
    for number in range(2_000):
        trie.add(f"#.a.#.{number}", number)
        if number > 2:
            trie.remove(f"#.a.#.{number - 3}", number - 3)
    assert sum(each.size for each in trie._automata) < 60
    assert list(trie.match("a.1999")) == [1999]
    assert list(trie.match("a.stays")) == [0]


def test_consecutive_hashes_match_like_one_hash() -> None:
    trie: TopicTrie[int] = TopicTrie()
    trie.add(".".join("#" * 127), 1)
    trie.add("#", 2)
    key = ".".join("a" * 127)
    assert list(trie.match(key)) == [1, 2]
    assert work(lambda: list(trie.match(key))) < 20 * 127
    trie.remove(".".join("#" * 127), 1)
    assert list(trie.match(key)) == [2]
    trie.remove("#", 2)
    assert not trie._root.children
