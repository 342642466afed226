"""A trace as one self-contained page: a sequence diagram with filter and search.

`rows` makes the data of the page from typed events; `page.html`, `page.css` and `page.js` show it. Text from
a peer reaches the page as data only. A content security policy allows only the page's own script and style,
and no loading.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.trace.html.rows import KINDS, Rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fakeamqp.trace.events import Event


def page(events: Iterable[Event], dropped: int = 0, title: str = "", clock: str = "") -> str:
    """The whole page; `dropped` is the number of older events, `clock` the mode of the broker's clock."""
    import json
    from html import escape
    from string import Template

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
    style, script = _asset("page.css"), _asset("page.js")
    return Template(_asset("page.html")).substitute(
        title=escape(title),
        style=style,
        script=script,
        data=written,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _asset(name: str) -> str:
    from importlib.resources import files

    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The source expression for `text` in a content security policy."""
    from base64 import b64encode
    from hashlib import sha256

    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
