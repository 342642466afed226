"""The inspector page: what a broker or a proxy holds and does, live in a browser, with a few actions.

`page.html`, `page.css` and `page.js` are the page, with what all pages share in `fakeamqp.trace.pages`. It
loads nothing else, and asks for all it shows:

| module | what it makes |
|---|---|
| `snapshot` | the whole broker as plain values, and what differs between two of them |
| `flows` | how many messages went through each exchange and along each binding, and the rates of queues |
| `timeline` | the lines of new events of the trace, the details of one, the story of a message, search |
| `outcomes` | messages that were published, returned, dead-lettered or dropped |
| `details` | messages, and everything about one queue, exchange or connection |
| `fault_form` | what the form for fault rules offers |
| `actions` | the questions of the page |
| `app` | the routes and the event stream |

Nothing of it runs while no page is open. Its buttons use the control interface.

The broker is read on the thread of the HTTP server, with the lock held for a part of the queues at a time,
and JSON is made without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.lazy import on_first_use

if TYPE_CHECKING:
    from fakeamqp.management.inspector.app import PUBLIC as PUBLIC, routes as routes
    from fakeamqp.management.inspector.inspector import Inspector as Inspector
else:
    __getattr__, __dir__ = on_first_use(__name__)
