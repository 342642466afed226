"""Assertions about published, returned, dead-lettered and dropped messages, with near misses.

The keywords of an `Expectation` are checked when it is created, so that a misspelled one fails immediately.
The comparison uses the records of the model, and creates views only of matches and near misses, since
histories are long.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict

from fakeamqp.errors import nearest as nearest_names
from fakeamqp.inspect.errors import (
    BadExpectation,
    Count,
    CountRange,
    NotAsExpected,
    NotDeadLettered,
    NotDropped,
    NotPublished,
    NotReturned,
    nearest,
)
from fakeamqp.inspect.hints import wait_hints
from fakeamqp.inspect.messages import (
    PROPERTIES,
    DeadLettered,
    Dropped,
    Published,
    Recorded,
    Returned,
    by_client,
    history,
    published_views,
    shortened,
    views,
)
from fakeamqp.model.exchanges.topic import TopicTrie

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState

Text: TypeAlias = "str | re.Pattern[str] | Callable[[Any], object]"
Number: TypeAlias = "int | Callable[[Any], object]"


class Wanted(TypedDict, total=False):
    """The keywords of `expect_published`. Keywords that are missing or None are ignored.

    An expected value is the value itself (or an object that equals it), a compiled regular expression that is
    searched, or a function that takes the value and returns whether it matches.

    - `exchange`: the name of the exchange; "" is the default exchange. - `routing_key`: a str is a topic
    pattern, in which the word `*` matches one word and `#` any number of words. - `body`: bytes, or a str
    that is compared in UTF-8, or a dict or list that is compared with the body parsed as JSON. - `json`: a
    part of the body parsed as JSON. A dict names members with their expected values, at every depth; further
    members are ignored. A list must have the same length. To compare with all of the body, use `body`.
    - `headers`: a mapping of required headers to expected values; further headers are ignored.
    - `content_type`, `content_encoding`, `delivery_mode`, `priority`, `correlation_id`, `reply_to`,
      `expiration`, `message_id`, `timestamp`, `type`, `user_id`, `app_id`: the message's properties.
    - `virtual_host`: the name of the virtual host; any by default. - `count`: the number of matching
    messages: an exact number, or (at least, at most) where at most may be None.
      Default: at least one.
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
    json: Any
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
    """The keywords of `expect_dead_lettered`: those of `Wanted`, about the message in its queue, and more.

    - `queue`: the name of the queue that dead-lettered it.
    - `reason`: "rejected", "expired", "maxlen", "delivery_limit".
    - `dead_letter_exchange`, `dead_letter_routing_key`: the exchange that routed it, and the routing key.
    """

    queue: Text | None
    reason: Text | None
    dead_letter_exchange: Text | None
    dead_letter_routing_key: Text | None


class WantedDropped(Wanted, total=False):
    """The keywords of `expect_dropped`: those of `Wanted`, and more.

    - `queue`: the name of the queue that held or refused it.
    - `reason`: see `DroppedView`; `detail`: the same as a sentence.
    """

    queue: Text | None
    reason: Text | None
    detail: Text | None


class EventKind(NamedTuple):
    """A kind of event that can be expected: published, returned, dead-lettered, dropped."""

    recorded: type[Recorded[Any, Any]]
    keywords: type
    error: type[NotAsExpected]
    by_clients: bool = False
    """Whether only what clients have published counts, and not what the test has."""

    @property
    def word(self) -> str:
        return self.recorded.word

    @property
    def function(self) -> str:
        return "expect_" + self.word.replace("-", "_")

    def views(self, state: BrokerState) -> Recorded[Any, Any]:
        """What the history contains of this kind; raises NoHistory."""
        return published_views(state) if self.by_clients else views(self.recorded, state)


KINDS = {
    "published": EventKind(Published, Wanted, NotPublished, by_clients=True),
    "all_published": EventKind(Published, Wanted, NotPublished),
    "returned": EventKind(Returned, WantedReturned, NotReturned),
    "dead_lettered": EventKind(DeadLettered, WantedDeadLettered, NotDeadLettered),
    "dropped": EventKind(Dropped, WantedDropped, NotDropped),
}

_OF_THE_EVENT = {
    "queue": "queue",
    "reason": "reason",
    "detail": "detail",
    "reply_code": "code",
    "reply_text": "text",
    "dead_letter_exchange": "exchange",
    "dead_letter_routing_key": "routing_key",
}
"""Keywords about the event instead of the message, with the field of the record."""


class _Test(NamedTuple):
    """One comparison of a message or an event."""

    name: str
    wanted: Any
    shown: str
    read: Callable[[Any], Any]
    fits: Callable[[Any], bool]
    of_message: bool = True
    """Whether it is about the message, and not about the event."""


_MOST_CONSIDERED = 50
_MOST_SHOWN = 5
_MOST_MISSES = 3
_MOST_PLACES = 6
"""How many differences of one JSON value are shown."""
_WIDEST = 200


class _Miss(NamedTuple):
    """A message that does not match, and why. `age` counts from the latest."""

    fails: int
    age: int
    record: Any
    failed: list[_Test]


class Expectation:
    """The expected events of one kind; see `Wanted` for the keywords. Raises BadExpectation."""

    def __init__(self, kind: EventKind = KINDS["published"], /, **wanted: Any) -> None:
        self.kind = kind
        known = kind.keywords.__annotations__
        for name in wanted:
            if name not in known:
                raise BadExpectation(f"{kind.function} knows no keyword {name!r}{nearest(name, known)}")
        given: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
        self._range = CountRange.of(given.pop("count", (1, None)))
        self._tests: list[_Test] = []
        # The cheapest comparisons that differ most often come first.
        for name in ("routing_key", "exchange", "virtual_host", *_OF_THE_EVENT, *PROPERTIES, "body", "json"):
            if name in given:
                self._tests += _tests(name, given[name])

    def check_now(self, state: BrokerState, *, waited: bool = False) -> tuple[Any, ...]:
        """The matching messages in the broker's history, in order, if there are as many as expected.

        Otherwise raises the error of the kind. `waited` says that the caller has waited before.
        """
        happened = self.kind.views(state)
        found = tuple(happened.view(record) for record in happened.records if self._fits(record))
        if self._range.holds(len(found)):
            return found
        said = self._report(happened, found)
        if len(found) < self._range.least:
            said += self._left_out(state) + self._instead(state)
        raise self.kind.error(said + wait_hints(state, f"{self.kind.function}.aio" if waited else ""))

    def _left_out(self, state: BrokerState) -> str:
        """A note about messages of the test itself that match and do not count."""
        if not self.kind.by_clients:
            return ""
        own = sum(self._fits(record) for record in history(state, "published") if not by_client(record))
        if not own:
            return ""
        what = "such a message" if own == 1 else f"{own} such messages"
        return f"\n\nThe test itself published {what}; include_own=True counts what it publishes."

    def _instead(self, state: BrokerState) -> str:
        """Other events of messages that match the expected one."""
        lines = []
        tests = [test for test in self._tests if test.of_message]
        for kind in KINDS.values():
            if kind.recorded in (Published, self.kind.recorded) or not tests:
                continue
            happened = kind.views(state)
            like = [each for each in happened.records if all(test.fits(test.read(each)) for test in tests)]
            if like:
                times = "once" if len(like) == 1 else f"{len(like)} times"
                lines.append(f"But {times} such a message was {kind.word}:")
                lines += [f"  {_cut(repr(happened.view(each)))}" for each in like[-_MOST_MISSES:]]
        return "\n\n" + "\n".join(lines) if lines else ""

    def follow(self) -> Callable[[BrokerState], bool]:
        """A predicate to wait for: true once `check` passes or can no longer pass.

        It compares each record once, and raises NoHistory if there is no history.
        """
        seen = found = 0

        def decided(state: BrokerState) -> bool:
            nonlocal seen, found
            kept = history(state, self.kind.word)
            if kept.count < seen:  # The history was cleared.
                seen = found = 0
            for record in islice(reversed(kept), kept.count - seen):
                if self._fits(record) and (not self.kind.by_clients or by_client(record)):
                    found += 1
            seen = kept.count
            return self._range.holds(found) or self._range.passed_by(found)

        return decided

    def _fits(self, record: Any) -> bool:
        return all(test.fits(test.read(record)) for test in self._tests)

    def __str__(self) -> str:
        wanted = ", ".join(f"{test.name}={test.shown}" for test in self._tests)
        word = self.kind.word
        return f"{self._range} {word} with {wanted}" if wanted else f"{self._range} {word}"

    # --- near misses ----------------------------------------------------------------------------------

    def _report(self, happened: Recorded[Any, Any], found: Sequence[Any]) -> str:
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
        # Comparing texts is slow, so only the best and latest few are sorted by it.
        best = heapq.nsmallest(_MOST_CONSIDERED, misses, key=lambda miss: (miss.fails, miss.age))
        best.sort(key=lambda miss: (miss.fails, -_likeness(miss.record, miss.failed), miss.age))
        lines = ["", "The nearest miss:" if len(misses) == 1 else "The nearest misses:"]
        for miss in best[:_MOST_MISSES]:
            lines.append(f"  {_cut(repr(happened.view(miss.record)))}")
            reasons = [reason for test in miss.failed for reason in _reasons(test, miss.record)]
            width = max(len(name) for name, _ in reasons)
            lines += [f"    {name:<{width}}  {text}" for name, text in reasons]
        if len(misses) > _MOST_MISSES:
            lines.append(f"  ... and {len(misses) - _MOST_MISSES} more that are further off or older")
        return lines


# --- tests ------------------------------------------------------------------------------------------------


def _tests(name: str, wanted: Any) -> list[_Test]:
    if name == "headers":
        if not isinstance(wanted, Mapping):
            raise BadExpectation(f"headers={wanted!r}: give a mapping of the headers that must be there")
        return [
            _Test(f"headers[{key!r}]", value, _shown(value), _header_reader(key), _fits(value))
            for key, value in wanted.items()
        ]
    is_json = isinstance(wanted, (dict, list))
    shown = _cut(repr(wanted), _WIDEST) if is_json else _shown(wanted)
    if name == "body":
        shown = f"JSON {shown}" if is_json else shown
        return [_Test(name, wanted, shown, lambda record: record[1].body, _body_fits(wanted))]
    if name == "json":
        return [
            _Test(
                name,
                wanted,
                shown.removeprefix("JSON "),
                lambda record: _parsed(record[1].body),
                lambda value: next(_differences(wanted, value), None) is None,
            )
        ]
    fits = _topic_fits(wanted) if name == "routing_key" and isinstance(wanted, str) else _fits(wanted)
    return [_Test(name, wanted, shown, _reader(name), fits, name not in _OF_THE_EVENT)]


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
    """The comparison with `wanted`: a search, a call, or a test for equality."""
    if isinstance(wanted, re.Pattern):

        def found(value: Any) -> bool:
            return isinstance(value, type(wanted.pattern)) and wanted.search(value) is not None

        return found
    if _is_predicate(wanted):
        return lambda value: value is not _MISSING and _asked(wanted, value) is True
    return lambda value: bool(wanted == value)


def _is_predicate(wanted: Any) -> bool:
    """Whether `wanted` is a function to call. Classes are compared, since some define equality."""
    return callable(wanted) and not isinstance(wanted, type)


def _asked(predicate: Callable[[Any], object], value: Any) -> bool | Exception:
    """The result of the predicate. An exception, as on another kind of message, means no match."""
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
        encoded = wanted.encode()
        return lambda body: body == encoded
    if isinstance(wanted, (dict, list)):
        return lambda body: bool(_parsed(body) == wanted)
    if isinstance(wanted, re.Pattern) and isinstance(wanted.pattern, str):
        return lambda body: wanted.search(body.decode("utf-8", "surrogateescape")) is not None
    return _fits(wanted)


# --- words ------------------------------------------------------------------------------------------------


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


def _reasons(test: _Test, record: Any) -> Iterator[tuple[str, str]]:
    """The name of what does not match, and how; of JSON, every place where it differs."""
    value = test.read(record)
    if test.name == "json" and value is not _NO_JSON:
        found = list(_differences(test.wanted, value))
        for each in found[:_MOST_PLACES]:
            near = f" (there is {each.near!r})" if each.near else ""
            part = _json_part(each.wanted) if not each.said else each.said
            was = f"{len(each.was)}: {_json_part(each.was)}" if each.said else _json_part(each.was)
            yield f"json{each.path}", f"expected {part}, was {was}{near or _kind_note(each.wanted, each.was)}"
        if len(found) > _MOST_PLACES:
            yield "json", f"... and {len(found) - _MOST_PLACES} more places"
        return
    was = f"not JSON: {_shown(record[1].body)}" if value is _NO_JSON else _shown(value)
    yield test.name, f"expected {test.shown}, was {was}{_difference_note(test, record)}"


def _json_part(value: Any) -> str:
    """A part of a pattern or of a value; unlike elsewhere, None is a value of JSON."""
    return "None" if value is None else _shown(value)


def _difference_note(test: _Test, record: Any) -> str:
    """A note about a value that does not match."""
    value = test.read(record)
    if _is_predicate(test.wanted) and value is not _MISSING:
        answer = _asked(test.wanted, value)
        return f" ({test.shown[5:-8]} raised {answer!r})" if isinstance(answer, Exception) else ""
    if test.name == "body" and isinstance(test.wanted, (dict, list)) and _parsed(value) is _NO_JSON:
        return ", which is not JSON"
    return _kind_note(test.wanted, value)


def _kind_note(wanted: Any, value: Any) -> str:
    kinds = (type(value).__name__, type(wanted).__name__)
    if kinds[0] != kinds[1] and isinstance(wanted, (str, int, float, bytes)):
        return f" ({kinds[0]}, not {kinds[1]})" if str(value) == str(wanted) else ""
    return ""


def _likeness(record: Any, failed: Sequence[_Test]) -> float:
    """How similar the values are that do not match: 0 and upwards."""
    import difflib

    total = 0.0
    for test in failed:
        value = test.read(record)
        if test.name == "json":
            places = 0 if value is _NO_JSON else sum(1 for _ in _differences(test.wanted, value))
            total += 1 / places if places else 0.0
        elif isinstance(value, (str, bytes)):
            wanted = test.wanted if isinstance(test.wanted, (str, bytes)) else test.shown
            total += difflib.SequenceMatcher(None, str(wanted)[:_WIDEST], str(value)[:_WIDEST]).ratio()
        elif value is not None and value is not _MISSING:
            total += 0.5
    return total


# --- JSON -------------------------------------------------------------------------------------------------
#
# Values are compared in part, with the places where they differ. An object of the pattern names the members
# that must be there; further members are ignored. An array must have the same length. A compiled regular
# expression is searched, a function is asked, and any other value is compared.


class _Marker:
    """A value that stands for none of JSON."""

    def __init__(self, said: str) -> None:
        self._said = said

    def __repr__(self) -> str:
        return self._said


_MISSING = _Marker("not there")
_NO_JSON = _Marker("not JSON")


class _JsonDifference(NamedTuple):
    """One place where a value does not match, such as `.items[0].price`; "" is the value itself.

    `said` is what was expected, if not `wanted` itself, and `near` the name of the member that may be meant.
    """

    path: str
    wanted: Any
    was: Any
    said: str = ""
    near: str = ""


def _parsed(body: bytes) -> Any:
    """The body parsed as JSON, or `_NO_JSON`."""
    import json

    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return _NO_JSON


def _differences(wanted: Any, value: Any, path: str = "") -> Iterator[_JsonDifference]:
    """Where a value of JSON, or `_NO_JSON`, does not match `wanted`, in the order of `wanted`."""
    if isinstance(wanted, Mapping):
        if not isinstance(value, dict):
            yield _JsonDifference(path, wanted, value)
            return
        for name, part in wanted.items():
            here = f"{path}{_step(name)}"
            if name in value:
                yield from _differences(part, value[name], here)
            else:
                near = nearest_names(name, sorted(value.keys() - wanted.keys()))
                yield _JsonDifference(here, part, _MISSING, near="".join(near))
    elif isinstance(wanted, Sequence) and not isinstance(wanted, (str, bytes, bytearray)):
        if not isinstance(value, list):
            yield _JsonDifference(path, wanted, value)
        elif len(wanted) != len(value):
            count = f"{len(wanted)} element{'' if len(wanted) == 1 else 's'}"
            yield _JsonDifference(path, wanted, value, said=count)
        else:
            for index, (part, element) in enumerate(zip(wanted, value, strict=True)):
                yield from _differences(part, element, f"{path}[{index}]")
    elif value is _NO_JSON or _differ_in_kind(wanted, value) or not _fits(wanted)(value):
        yield _JsonDifference(path, wanted, value)


def _differ_in_kind(wanted: Any, value: Any) -> bool:
    """Whether one is true or false, and the other a number: Python takes True for 1."""
    plain = isinstance(wanted, (int, float)) and isinstance(value, (int, float))
    return plain and isinstance(wanted, bool) is not isinstance(value, bool)


def _step(name: object) -> str:
    text = str(name)
    return f".{text}" if re.fullmatch(r"[^\W\d][\w-]*", text) else f"[{name!r}]"
