"""A trace as one self-contained page: a sequence diagram with filter and search.

`rows` makes the data of the page from typed events; `page.html`, `page.css` and `page.js` show it. Text from
a peer reaches the page as data only. A content security policy allows only the page's own script and style,
and no loading.
"""

from __future__ import annotations

from fakeamqp.trace.html.page import page

__all__ = ["page"]
