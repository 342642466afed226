"""A trace as one self-contained page: a sequence diagram with filter and search.

`rows` makes the data of the page from typed events; `page.html`, `page.css` and `page.js` show it, with
what all pages share in `fakeamqp.trace.pages`. Text from a peer reaches the page as data only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.trace.html.rows import KINDS, Rows
from fakeamqp.trace.pages import fill, words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fakeamqp.trace.events import Event
    from fakeamqp.trace.failure import Failure


def page(
    events: Iterable[Event],
    dropped: int = 0,
    title: str = "",
    clock: str = "",
    failure: Failure | None = None,
) -> str:
    """The whole page.

    Args:
        events: what it shows.
        dropped: the number of older events.
        title: of the page; "" for a general one.
        clock: the mode of the broker's clock.
        failure: the failed test that the page opens at.
    """
    import json
    from html import escape

    rows = Rows(events)
    title = title or "AMQP trace"
    data = {
        "title": title,
        "clock": clock,
        "events": rows.count,
        "dropped": dropped,
        "began": rows.began,
        "ended": rows.ended,
        "connections": rows.connections,
        "failure": None if failure is None else failure.to_json(),
        "kinds": KINDS,
        "words": words(),
        "pool": rows.pool,
        "rows": rows.rows,
    }
    # In a script element only "<" can start an end tag or a comment.
    written = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return fill(__package__, title=escape(title), data=written)
