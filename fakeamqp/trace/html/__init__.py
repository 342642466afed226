"""A trace as one self-contained page: a sequence diagram with filter and search.

`rows` makes what the page shows from typed events; `page.html`, `page.css` and `page.js` show it. Whatever a
peer has sent reaches the page as data alone, and a content security policy lets nothing run or load but the
page's own script.
"""

from __future__ import annotations

from fakeamqp.trace.html.page import page

__all__ = ["page"]
