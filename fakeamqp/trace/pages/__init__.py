"""What the pages share (the trace, the inspector, the report): the head, style and parts of scripts.

| file | what it is |
|---|---|
| `head.html` | everything up to `<body>` |
| `base.css` | colours, and what all pages have: header, tabs, bars, tables, the story of a message |
| `base.js` | the object `parts`: text from peers as nodes, tables, bodies, colours, the story of a message |

Each page has a template `page.html` beside its own `page.css` and `page.js`, which follow those of `base`.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template

from fakeamqp.model.events import EVENTS


def fill(package: str, **values: str) -> str:
    """The page of a package as one HTML file, which loads no other file.

    The page has a content security policy, which names style and script by their hashes. So no text from a
    peer can run or load anything, even if it were markup.

    Args:
        package: the name of the package.
        values: HTML by its name in the template; `title` is the title of the page.
    """
    style, script = style_of(package), script_of(package)
    allowed = [f"script-src {_hash(script)}"] * bool(script) + [f"style-src {_hash(style)}"]
    policy = "; ".join(("default-src 'none'", *allowed, "base-uri 'none'", "form-action 'none'"))
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>'
    return page_of(package, head, script=script, **values)


def page_of(package: str, head: str, /, **values: str) -> str:
    """The page of a package, with `head` at the end of its head."""
    begin = Template(_read(__package__, "head.html")).substitute(title=values["title"], head=head)
    return begin + Template(_read(package, "page.html")).substitute(values)


@cache
def style_of(package: str) -> str:
    """The style of a page."""
    return _read(__package__, "base.css") + _read(package, "page.css")


@cache
def script_of(package: str) -> str:
    """The script of a page; "" if it has none."""
    own = _read(package, "page.js")
    return own and _read(__package__, "base.js") + own


def words() -> dict[str, str]:
    """What the events of the broker mean, by their names: the first sentences of their declarations."""
    sentences = {name: event.happens.partition(". ")[0].rstrip(".") for name, event in EVENTS.items()}
    return {name: f"{sentence.replace('`', '')}." for name, sentence in sentences.items()}


def _hash(text: str) -> str:
    from base64 import b64encode
    from hashlib import sha256

    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _read(package: str, name: str) -> str:
    file = files(package).joinpath(name)
    return file.read_text(encoding="utf-8") if file.is_file() else ""
