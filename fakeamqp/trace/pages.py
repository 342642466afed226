"""Puts pages together: one HTML file of a template, its style and its script, which loads no other file."""

from __future__ import annotations


def fill(package: str, **values: str) -> str:
    """The file `page.html` of a package with values, and with its `page.css` and `page.js`.

    The template has a content security policy, which names style and script by their hashes. So no text from
    a peer can run or load anything, even if it were markup.

    Args:
        package: the name of the package.
        values: HTML by its name in the template.
    """
    from base64 import b64encode
    from hashlib import sha256
    from importlib.resources import files
    from string import Template

    assets = files(package)
    for name, file in (("style", "page.css"), ("script", "page.js")):
        if assets.joinpath(file).is_file():
            values[name] = text = assets.joinpath(file).read_text(encoding="utf-8")
            values[f"{name}_hash"] = "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
    return Template(assets.joinpath("page.html").read_text(encoding="utf-8")).substitute(values)
