"""Topic patterns as a trie: words, `*` for exactly one word, `#` for any number of them.

Keys are split at every dot, so consecutive dots delimit empty words (exchange-type.topic/empty-words),
and the empty key is no word at all. Wildcards count only as whole words of a pattern, never in a message's
key. Consecutive `#` are as one, and are stored as one: `a.#.#` and `a.#` are the same pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

__all__ = ["TopicTrie"]

T = TypeVar("T")


class _Node(Generic[T]):
    __slots__ = ("children", "items", "repeats")

    def __init__(self, repeats: bool = False) -> None:
        self.children: dict[str, _Node[T]] = {}
        self.items: dict[T, None] = {}
        self.repeats = repeats
        """Whether the node is that of a `#`: it matches any number of words."""


class TopicTrie(Generic[T]):
    """Items stored under patterns, found by keys."""

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()

    def add(self, pattern: str, item: T) -> None:
        """Add `item` under `pattern`; adding it again has no effect."""
        node = self._root
        for word in _pattern_words(pattern):
            child = node.children.get(word)
            if child is None:
                child = node.children[word] = _Node(word == "#")
            node = child
        node.items[item] = None

    def remove(self, pattern: str, item: T) -> None:
        """Remove `item` from `pattern`, and remove empty branches."""
        path = [self._root]
        words = _pattern_words(pattern)
        for word in words:
            child = path[-1].children.get(word)
            if child is None:
                return
            path.append(child)
        path[-1].items.pop(item, None)
        for parent, word, child in zip(reversed(path[:-1]), reversed(words), reversed(path[1:]), strict=True):
            if child.items or child.children:
                break
            del parent.children[word]

    def match(self, key: str) -> Iterator[T]:
        """Every item whose pattern matches `key`, once each, in the order of the walk.

        Costs one visit of constant time per (node, position) pair, however many `#` a pattern has.
        """
        words = _words(key)
        end = len(words)
        found: dict[T, None] = {}
        seen: set[tuple[int, int]] = set()
        pending: list[tuple[_Node[T], int]] = [(self._root, 0)]
        while pending:
            node, position = pending.pop()
            if (id(node), position) in seen:
                continue
            seen.add((id(node), position))
            if position == end:
                found.update(node.items)
            elif node.repeats:
                pending.append((node, position + 1))
            children = node.children
            if not children:
                continue
            hashed = children.get("#")
            if hashed is not None:
                pending.append((hashed, position))
            if position < end:
                starred = children.get("*")
                if starred is not None:
                    pending.append((starred, position + 1))
                word = words[position]
                literal = children.get(word) if word not in ("*", "#") else None
                if literal is not None:
                    pending.append((literal, position + 1))
        return iter(found)


def _words(key: str) -> list[str]:
    return key.split(".") if key else []


def _pattern_words(pattern: str) -> list[str]:
    """The words of a pattern, with one `#` for consecutive ones."""
    words = _words(pattern)
    return [word for at, word in enumerate(words) if word != "#" or not at or words[at - 1] != "#"]
