"""Makes a site of the repository's pages, for MkDocs (`make docs`).

The pages link to each other and to files as they lie in the repository, so that they can be read there. The
site has other places for some of them: this hook gives each page its place, adds a page for each public
class, and lets links to files that are no pages lead to the repository.
"""

from __future__ import annotations

import importlib
import inspect
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]

ELSEWHERE = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
"""Pages outside `docs/`, and their places on the site."""

EXAMPLES = {
    path.relative_to(ROOT).as_posix(): path.relative_to(ROOT).as_posix().replace("README.md", "index.md")
    for path in sorted(ROOT.glob("examples/**/README.md"))
}

_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()([^)#\s]*)(#[^)\s]*)?(?=\))")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the examples and of the public classes into the navigation."""
    sections = {name: entries for each in config.nav or [] for name, entries in each.items()}
    _section(sections["Tutorial"], "Examples").extend(
        place for place in EXAMPLES.values() if place != "examples/index.md"
    )
    api = _section(sections["Reference"], "Python API")
    for module, pages in _public_classes():
        api.append({module: [{title: place} for title, place, _ in pages]})
    return config


def _section(entries: list[dict[str, Any]], name: str) -> list[Any]:
    return next(each[name] for each in entries if name in each)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not lie in `docs/`."""
    from mkdocs.structure.files import File

    for source, place in {**ELSEWHERE, **EXAMPLES}.items():
        text = (ROOT / source).read_text("utf-8")
        files.append(
            File.generated(config, place, content=with_links_of_the_site(text, source, place, config))
        )
    for _, pages in _public_classes():
        for title, place, path in pages:
            files.append(File.generated(config, place, content=f"---\ntitle: {title}\n---\n\n::: {path}\n"))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let the links of a page in `docs/` lead to places of the site."""
    if page.file.generated_by is not None:
        return markdown
    place = page.file.src_uri
    return with_links_of_the_site(markdown, f"docs/{place}", place, config)


def with_links_of_the_site(text: str, source: str, place: str, config: MkDocsConfig) -> str:
    """The text of a page with other links.

    Args:
        text: in Markdown.
        source: the path of the page in the repository.
        place: the path of the page on the site.
        config: names the repository.
    """

    def link(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        if not target or ":" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        return _link(path, place, config) + anchor

    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts)


def _link(path: str, place: str, config: MkDocsConfig) -> str:
    """From a page of the site to a path of the repository."""
    found = {**ELSEWHERE, **EXAMPLES}.get(path) or EXAMPLES.get(f"{path}/README.md")
    if found is None and path.startswith("docs/"):
        found = path.removeprefix("docs/")
    if found is not None:
        return posixpath.relpath(found, posixpath.dirname(place) or ".")
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{config.repo_url}/{kind}/main/{path}"


def _public_classes() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """The public modules, and of each its classes: name, place on the site, and path for mkdocstrings."""
    sys.path.insert(0, str(ROOT))
    try:
        api_page = importlib.import_module("compat_tests.tools.api_page")
    finally:
        sys.path.remove(str(ROOT))
    shown: set[type] = set()
    for module in api_page.MODULES:
        pages = []
        for name, value in api_page.names(importlib.import_module(module)).items():
            if inspect.isclass(value) and value not in shown:
                shown.add(value)
                pages.append((name, f"api/{module}/{name}.md", f"{module}.{name}"))
        if pages:
            yield module, pages
