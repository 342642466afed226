"""A trace as one self-contained page: a sequence diagram with filter and search.

`rows` makes the data of the page from typed events; `page.html`, `page.css` and `page.js` show it. Text from
a peer reaches the page as data only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.trace.html.rows import KINDS, Rows
from fakeamqp.trace.pages import fill

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fakeamqp.trace.events import Event


def page(events: Iterable[Event], dropped: int = 0, title: str = "", clock: str = "") -> str:
    """The whole page; `dropped` is the number of older events, `clock` the mode of the broker's clock."""
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
        "kinds": KINDS,
        "pool": rows.pool,
        "rows": rows.rows,
    }
    # In a script element only "<" can start an end tag or a comment.
    written = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return fill(__package__, title=escape(title), data=written)
