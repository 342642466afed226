"""What a test expects to have happened to messages, and the near misses where it has not.

An `Expectation` is checked when it is made, so that a misspelled keyword fails at once and not after a wait.
It compares the model's own records and makes views only of what fits or nearly fits: histories are long.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict, TypeVar

from fakeamqp.inspect.counts import Count, Range
from fakeamqp.inspect.ends import (
    dead_lettered_views,
    dead_letters,
    dropped_views,
    drops,
    returned_views,
    returns,
)
from fakeamqp.inspect.errors import (
    BadExpectation,
    NotAsExpected,
    NotDeadLettered,
    NotDropped,
    NotPublished,
    NotReturned,
    nearest,
)
from fakeamqp.inspect.messages import (
    PROPERTIES,
    ContentView,
    Published,
    PublishedView,
    Recorded,
    history,
    published_views,
    shortened,
)
from fakeamqp.inspect.remarks import remark
from fakeamqp.model.exchanges.trie import TopicTrie

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from fakeamqp.model.history import History
    from fakeamqp.model.state import BrokerState

__all__ = [
    "DEAD_LETTERED",
    "DROPPED",
    "PUBLISHED",
    "RETURNED",
    "Expectation",
    "Kind",
    "Wanted",
    "WantedDeadLettered",
    "WantedDropped",
    "WantedReturned",
    "expect_published",
]

V = TypeVar("V", bound=ContentView)

Text: TypeAlias = "str | re.Pattern[str] | Callable[[Any], object]"
Number: TypeAlias = "int | Callable[[Any], object]"


class Wanted(TypedDict, total=False):
    """The keywords of `expect_published`. One that is missing or None is not asked about.

    Where a value is wanted it may be the value itself (or anything that equals it), a compiled regular
    expression that is searched for, or a function of the value that says whether it will do.

    - `exchange`: its name; "" is the default exchange.
    - `routing_key`: as a str it is a topic pattern, in which the word `*` stands for one word and `#` for any
      number of words; without these it stands for itself.
    - `body`: bytes, or a str that is compared in UTF-8, or a dict or list that is compared with the body
      read as JSON.
    - `headers`: those that must be there, with what each must be; others do not matter.
    - `content_type`, `content_encoding`, `delivery_mode`, `priority`, `correlation_id`, `reply_to`,
      `expiration`, `message_id`, `timestamp`, `type`, `user_id`, `app_id`: the message's properties.
    - `virtual_host`: where; anywhere when not given.
    - `count`: how many messages must fit: exactly so many, or (at least, at most) where at most may be None.
      When not given, at least one.
    """

    exchange: Text | None
    routing_key: Text | None
    body: (
        bytes
        | str
        | dict[str, Any]
        | list[Any]
        | re.Pattern[str]
        | re.Pattern[bytes]
        | Callable[[bytes], object]
        | None
    )
    headers: Mapping[str, Any] | None
    content_type: Text | None
    content_encoding: Text | None
    delivery_mode: Number | None
    priority: Number | None
    correlation_id: Text | None
    reply_to: Text | None
    expiration: Text | None
    message_id: Text | None
    timestamp: Number | None
    type: Text | None
    user_id: Text | None
    app_id: Text | None
    virtual_host: Text | None
    count: Count | None


class WantedReturned(Wanted, total=False):
    """The keywords of `expect_returned`: those of `Wanted`, and `reply_code`, `reply_text`."""

    reply_code: Number | None
    reply_text: Text | None


class WantedDeadLettered(Wanted, total=False):
    """The keywords of `expect_dead_lettered`: those of `Wanted`, of the message as it was when it died, more.

    - `queue`: the name of the queue it died in.
    - `reason`: "rejected", "expired", "maxlen", "delivery_limit".
    - `dead_letter_exchange`, `dead_letter_routing_key`: how it went on.
    """

    queue: Text | None
    reason: Text | None
    dead_letter_exchange: Text | None
    dead_letter_routing_key: Text | None


class WantedDropped(Wanted, total=False):
    """The keywords of `expect_dropped`: those of `Wanted`, and more.

    - `queue`: the name of the queue that had it, or would not have it.
    - `reason`: see `DroppedView`; `detail`: the same in words.
    """

    queue: Text | None
    reason: Text | None
    detail: Text | None


class Kind(NamedTuple):
    """What can be expected of messages: that they are published, returned, ..."""

    word: str
    keywords: type
    error: type[NotAsExpected]
    history: Callable[[BrokerState], History[Any]]
    views: Callable[[BrokerState], Recorded[Any, Any]]

    @property
    def function(self) -> str:
        """The name of the function that expects it."""
        return "expect_" + self.word.replace("-", "_")


PUBLISHED = Kind("published", Wanted, NotPublished, history, published_views)
RETURNED = Kind("returned", WantedReturned, NotReturned, returns, returned_views)
DEAD_LETTERED = Kind("dead-lettered", WantedDeadLettered, NotDeadLettered, dead_letters, dead_lettered_views)
DROPPED = Kind("dropped", WantedDropped, NotDropped, drops, dropped_views)

_OF_THE_EVENT = {
    "queue": "queue",
    "reason": "reason",
    "detail": "detail",
    "reply_code": "code",
    "reply_text": "text",
    "dead_letter_exchange": "exchange",
    "dead_letter_routing_key": "routing_key",
}
"""Keywords that ask for what happened to the message, with the field of the record that knows."""


class _Test(NamedTuple):
    """One thing to look at in each message."""

    name: str
    wanted: Any
    shown: str
    read: Callable[[Any], Any]
    fits: Callable[[Any], bool]
    of_message: bool = True
    """Whether it is about the message, and not about what happened to it."""


_MOST_CONSIDERED = 50
_MOST_SHOWN = 5
_MOST_MISSES = 3
_WIDEST = 200


class _Miss(NamedTuple):
    """A message that does not fit, and why. `age` counts from the latest."""

    fails: int
    age: int
    record: Any
    failed: list[_Test]


class Expectation:
    """What is expected to have been published, or whatever `kind` says; see `Wanted` for the keywords.

    Raises:
        BadExpectation: a keyword is misspelled, or a value cannot be compared with.
    """

    def __init__(self, kind: Kind = PUBLISHED, /, **wanted: Any) -> None:
        self.kind = kind
        known = kind.keywords.__annotations__
        for name in wanted:
            if name not in known:
                raise BadExpectation(f"{kind.function} knows no keyword {name!r}{nearest(name, known)}")
        given: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
        self._range = Range.of(given.pop("count", (1, None)))
        self._tests: list[_Test] = []
        # In this order, because those that differ most often and cost least come first.
        for name in ("routing_key", "exchange", "virtual_host", *_OF_THE_EVENT, *PROPERTIES, "body"):
            if name in given:
                self._tests += _tests(name, given[name])

    @classmethod
    def of_nothing(cls, kind: Kind, wanted: Mapping[str, Any]) -> Expectation:
        """The expectation that nothing of a kind fits.

        Raises:
            BadExpectation: as when one is made, or `count` is given.
        """
        if wanted.get("count") is not None:
            raise BadExpectation(f"count={wanted['count']!r}: what is expected not to be has no count")
        return cls(kind, **{**wanted, "count": 0})

    def matches(self, happened: Recorded[V, Any]) -> tuple[V, ...]:
        """The messages that fit, in order."""
        return tuple(happened.view(record) for record in happened.records if self._fits(record))

    def check(self, happened: Recorded[V, Any], *, remark: str = "") -> tuple[V, ...]:
        """The messages that fit, if there are as many as expected.

        Raises:
            NotPublished, or its like for the kind: there are not; the text shows the nearest misses, and
                `remark` at its end.
        """
        found = self.matches(happened)
        if not self._range.holds(len(found)):
            raise self.kind.error(self._report(happened, found) + remark)
        return found

    def check_now(self, state: BrokerState) -> tuple[Any, ...]:
        """`check` of what the broker remembers. What became of the message instead is said as well."""
        happened = self.kind.views(state)
        found = self.matches(happened)
        if self._range.holds(len(found)):
            return found
        said = self._report(happened, found)
        if len(found) < self._range.least:
            said += self._instead(state)
        raise self.kind.error(said + remark(state))

    def _instead(self, state: BrokerState) -> str:
        """What else has happened to messages that are like the one expected."""
        lines = []
        tests = [test for test in self._tests if test.of_message]
        for kind in (RETURNED, DEAD_LETTERED, DROPPED):
            if kind is self.kind or not tests:
                continue
            happened = kind.views(state)
            like = [each for each in happened.records if all(test.fits(test.read(each)) for test in tests)]
            if like:
                lines.append(f"But {_times(len(like))} such a message was {kind.word}:")
                lines += [f"  {_cut(repr(happened.view(each)))}" for each in like[-_MOST_MISSES:]]
        return "\n\n" + "\n".join(lines) if lines else ""

    def follow(self) -> Callable[[BrokerState], bool]:
        """A predicate to wait with: is it decided, so that `check` either passes or never will?

        It looks at each publish once, however often it is asked, and raises NoHistory where there is none.
        """
        seen = found = 0

        def decided(state: BrokerState) -> bool:
            nonlocal seen, found
            published = self.kind.history(state)
            if published.count < seen:  # The history was cleared.
                seen = found = 0
            fresh = islice(reversed(published), published.count - seen)
            found += sum(self._fits(record) for record in fresh)
            seen = published.count
            return self._range.holds(found) or self._range.passed_by(found)

        return decided

    def _fits(self, record: Any) -> bool:
        return all(test.fits(test.read(record)) for test in self._tests)

    def __str__(self) -> str:
        wanted = ", ".join(f"{test.name}={test.shown}" for test in self._tests)
        word = self.kind.word
        return f"{self._range} {word} with {wanted}" if wanted else f"{self._range} {word}"

    # --- near misses ----------------------------------------------------------------------------------

    def _report(self, happened: Recorded[V, Any], found: Sequence[V]) -> str:
        """Why it is not as expected."""
        word = self.kind.word
        one = self._range.least == 1 and self._range.most in (1, None)
        lines = [f"expected {self._range} {word} message{'' if one else 's'}"]
        if self._tests:
            lines[0] += " with"
            width = max(len(test.name) for test in self._tests)
            lines += [f"    {test.name:<{width}}  {test.shown}" for test in self._tests]
        total = len(happened)
        if not total:
            lines.append(f"but nothing was {word}")
        elif found:
            lines.append(f"but {len(found)} of {total} {word} {'fits' if len(found) == 1 else 'fit'}:")
            lines += [f"    {_cut(repr(view))}" for view in found[:_MOST_SHOWN]]
            if len(found) > _MOST_SHOWN:
                lines.append(f"    ... and {len(found) - _MOST_SHOWN} more")
        else:
            lonely = f"but the only one {word} does not fit"
            lines.append(lonely if total == 1 else f"but none of {total} {word} fit")
        if happened.dropped:
            lines.append(
                f"({happened.dropped} older ones are no longer kept; the broker's history can be longer)"
            )
        if not self._range.passed_by(len(found)):
            lines += self._near_misses(happened)
        return "\n".join(lines)

    def _near_misses(self, happened: Recorded[Any, Any]) -> list[str]:
        misses = []
        for age, record in enumerate(reversed(happened.records)):
            failed = [test for test in self._tests if not test.fits(test.read(record))]
            if failed:
                misses.append(_Miss(len(failed), age, record, failed))
        if not misses:
            return []
        # Comparing texts is slow, so only the best and latest few are put in order by it.
        best = heapq.nsmallest(_MOST_CONSIDERED, misses, key=lambda miss: (miss.fails, miss.age))
        best.sort(key=lambda miss: (miss.fails, -_likeness(miss.record, miss.failed), miss.age))
        lines = ["", "The nearest miss:" if len(misses) == 1 else "The nearest misses:"]
        for miss in best[:_MOST_MISSES]:
            lines.append(f"  {_cut(repr(happened.view(miss.record)))}")
            width = max(len(test.name) for test in miss.failed)
            for test in miss.failed:
                was = _shown(test.read(miss.record))
                remark = _remark(test, miss.record)
                lines.append(f"    {test.name:<{width}}  expected {test.shown}, was {was}{remark}")
        if len(misses) > _MOST_MISSES:
            lines.append(f"  ... and {len(misses) - _MOST_MISSES} more that are further off or older")
        return lines


def expect_published(published: Published, **wanted: Unpack[Wanted]) -> tuple[PublishedView, ...]:
    """The messages that fit, if there are as many as expected; see `Wanted` for the keywords.

    Raises:
        NotPublished: there are not; the text shows what was published instead, the nearest misses first.
        BadExpectation: a keyword is misspelled, or a value cannot be compared with.
    """
    return Expectation(**wanted).check(published)


# --- tests ------------------------------------------------------------------------------------------------


class _Missing:
    """Stands for a header that is not there."""

    def __repr__(self) -> str:
        return "not there"


_MISSING = _Missing()


def _tests(name: str, wanted: Any) -> list[_Test]:
    if name == "headers":
        if not isinstance(wanted, Mapping):
            raise BadExpectation(f"headers={wanted!r}: give a mapping of the headers that must be there")
        return [
            _Test(f"headers[{key!r}]", value, _shown(value), _header_reader(key), _fits(value))
            for key, value in wanted.items()
        ]
    if name == "body":
        return [_Test(name, wanted, _body_shown(wanted), lambda record: record[1].body, _body_fits(wanted))]
    fits = _topic_fits(wanted) if name == "routing_key" and isinstance(wanted, str) else _fits(wanted)
    return [_Test(name, wanted, _shown(wanted), _reader(name), fits, name not in _OF_THE_EVENT)]


def _reader(name: str) -> Callable[[Any], Any]:
    if name == "virtual_host":
        return lambda record: record[0]
    if name in _OF_THE_EVENT:
        field = _OF_THE_EVENT[name]
        return lambda record: getattr(record, field)
    if name in ("exchange", "routing_key"):
        return lambda record: getattr(record[1], name)
    return lambda record: getattr(record[1].properties, name)


def _header_reader(key: str) -> Callable[[Any], Any]:
    return lambda record: (record[1].properties.headers or {}).get(key, _MISSING)


def _fits(wanted: Any) -> Callable[[Any], bool]:
    """How to compare with `wanted`: search, ask, or test for equality."""
    if isinstance(wanted, re.Pattern):

        def found(value: Any) -> bool:
            return isinstance(value, type(wanted.pattern)) and wanted.search(value) is not None

        return found
    if _is_predicate(wanted):
        return lambda value: value is not _MISSING and _asked(wanted, value) is True
    return lambda value: bool(wanted == value)


def _is_predicate(wanted: Any) -> bool:
    """Whether it is to be asked. Classes are compared with: some equal whatever is an instance of them."""
    return callable(wanted) and not isinstance(wanted, type)


def _asked(predicate: Callable[[Any], object], value: Any) -> bool | Exception:
    """What the predicate says. One that fails on a message of another kind just does not fit."""
    try:
        return bool(predicate(value))
    except Exception as error:
        return error


def _topic_fits(pattern: str) -> Callable[[Any], bool]:
    if not {"*", "#"} & set(pattern.split(".")):
        return lambda key: bool(key == pattern)
    trie: TopicTrie[bool] = TopicTrie()
    trie.add(pattern, True)
    return lambda key: any(trie.match(key))


def _body_fits(wanted: Any) -> Callable[[bytes], bool]:
    if isinstance(wanted, str):
        octets = wanted.encode()
        return lambda body: body == octets
    if isinstance(wanted, (dict, list)):
        return lambda body: bool(_parsed(body) == wanted)
    if isinstance(wanted, re.Pattern) and isinstance(wanted.pattern, str):
        return lambda body: wanted.search(body.decode("utf-8", "surrogateescape")) is not None
    return _fits(wanted)


def _parsed(body: bytes) -> Any:
    """The body read as JSON, or something that equals nothing where it is none."""
    import json

    try:
        return json.loads(body)
    except ValueError:
        return _MISSING


# --- words ------------------------------------------------------------------------------------------------


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _cut(text: str, most: int = 2 * _WIDEST) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _shown(value: Any) -> str:
    if isinstance(value, re.Pattern):
        return f"something with /{value.pattern!s}/"
    if isinstance(value, (bytes, bytearray)):
        return repr(shortened(bytes(value)))
    if _is_predicate(value):
        return f"what {getattr(value, '__qualname__', None) or repr(value)} accepts"
    return "not there" if value is None else _cut(repr(value), _WIDEST)


def _body_shown(wanted: Any) -> str:
    if isinstance(wanted, (dict, list)):
        return f"JSON {_cut(repr(wanted), _WIDEST)}"
    return _shown(wanted)


def _remark(test: _Test, record: Any) -> str:
    """What else there is to say of a value that does not fit."""
    value = test.read(record)
    if _is_predicate(test.wanted) and value is not _MISSING:
        answer = _asked(test.wanted, value)
        return f" ({test.shown[5:-8]} raised {answer!r})" if isinstance(answer, Exception) else ""
    if test.name == "body" and isinstance(test.wanted, (dict, list)) and _parsed(value) is _MISSING:
        return ", which is not JSON"
    kinds = (type(value).__name__, type(test.wanted).__name__)
    if kinds[0] != kinds[1] and isinstance(test.wanted, (str, int, float, bytes)):
        return f" ({kinds[0]}, not {kinds[1]})" if str(value) == str(test.wanted) else ""
    return ""


def _likeness(record: Any, failed: Sequence[_Test]) -> float:
    """How near the values come that do not fit: 0 and upwards."""
    import difflib

    total = 0.0
    for test in failed:
        value = test.read(record)
        if isinstance(value, (str, bytes)):
            wanted = test.wanted if isinstance(test.wanted, (str, bytes)) else test.shown
            total += difflib.SequenceMatcher(None, str(wanted)[:_WIDEST], str(value)[:_WIDEST]).ratio()
        elif value is not None and value is not _MISSING:
            total += 0.5
    return total
