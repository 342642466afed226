"""Makes a site of the repository's pages, for MkDocs (`make docs`).

The pages link to each other and to files as they lie in the repository, so that they can be read there. The
site has other places for some of them: this hook gives each page its place, adds a page for each public
class, and lets links to files that are no pages lead to the repository. It tells the search which pages come
first, and leads old addresses to new ones.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import posixpath
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
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

NOT_SEARCHED = ("attempts.md", "changelog.md", "conformance*.md", "simulation-findings.md", "api.md")
"""Pages of records and lists, which would come before the pages about their subjects."""

RANKS = {
    "troubleshooting.md": 6.0,
    "support.md": 4.0,
    "recipes/lost-connection.md": 4.0,
    "recipes/*.md": 2.0,
    "fault-injection.md": 3.0,
    "fault-*.md": 2.0,
    "faults.md": 2.0,
    "getting-started.md": 2.0,
    "pytest*.md": 2.0,
    "inspecting.md": 2.0,
    "time.md": 2.0,
    "architecture.md": 0.3,
    "benchmark*.md": 0.3,
    "contributing*.md": 0.1,
    "decisions*.md": 0.3,
    "glossary-internal.md": 0.1,
    "golden-bytes.md": 0.1,
    "reliability.md": 0.1,
    "spark-testing.md": 1.5,
    "spark-*.md": 0.5,
    "api/*": 0.05,
}
"""The weight of pages among the results of a search, by the first pattern that fits; others have 1."""

SEARCHED_AS = {
    "recipes/lost-connection.md": ["reconnect", "reconnection", "disconnect", "connection lost", "retry"],
    "troubleshooting.md": [
        "hang",
        "hangs",
        "stuck",
        "deadlock",
        "flaky",
        "flake",
        "timeout",
        "WaitTimeout",
        "xdist",
    ],
    "support.md": [
        *(
            "delayed message",
            "x-delayed-message",
            "x-delivery-limit",
            "consumer timeout",
            "x-consumer-timeout",
        ),
        *(
            "x-message-ttl",
            "x-dead-letter-exchange",
            "x-max-length",
            "x-max-priority",
            "quorum",
            "stream",
            "DLX",
        ),
    ],
    "time.md": ["sleep", "freezegun", "time-machine", "ttl", "expire"],
    "fault-injection.md": ["nack", "error", "failure", "simulate"],
    "fault-network.md": ["latency", "slow network", "toxiproxy", "half-open"],
    "pytest-environment.md": ["settings", "environment variable", "session scope"],
    "pytest-real-broker.md": ["real RabbitMQ"],
    "recipes/ci.md": ["GitHub Actions", "GitLab", "docker"],
}
"""Words that readers search for and that a page does not use, or not in its headings."""

SPLIT = {
    "benchmarks": ["benchmarks-internal"],
    "decisions": ["decisions-0-9-1", "decisions-0-10", "decisions-0-9", "decisions-simulation"],
    "fault-injection": ["fault-actions", "fault-network", "fault-chaos", "fault-protocols"],
    "glossary": ["glossary-internal"],
    "pytest-fixtures": ["pytest-environment", "pytest-real-broker"],
}
"""Pages that lost headings to others. Links to these headings lead on."""

MERMAID = ROOT / "build" / "mermaid" / "package" / "dist" / "mermaid.min.js"
"""Draws diagrams. `make docs` gets it if there is npm; otherwise the theme loads it from another server."""

STYLES = "stylesheets/site.css"

_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()([^)#\s]*)(#[^)\s]*)?(?=\))")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the examples and of the public classes into the navigation."""
    config.extra_css.append(STYLES)
    if MERMAID.exists():
        config.extra_javascript.append("javascripts/mermaid.min.js")
    sections = {name: entries for each in config.nav or [] for name, entries in each.items()}
    _section(sections["Start"], "Examples").extend(
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
    styles = (ROOT / "docs" / "_site" / "site.css").read_text("utf-8")
    files.append(File.generated(config, STYLES, content=styles))
    if MERMAID.exists():
        place = "javascripts/mermaid.min.js"
        files.append(File.generated(config, place, content=MERMAID.read_text("utf-8")))
    for _, pages in _public_classes():
        for title, place, path in pages:
            files.append(File.generated(config, place, content=f"---\ntitle: {title}\n---\n\n::: {path}\n"))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let the links of a page in `docs/` lead to places of the site, and give it its place in the search."""
    place = page.file.src_uri
    if place == "index.md":
        page.meta["hide"] = ["navigation"]
    if any(fnmatch(place, pattern) for pattern in NOT_SEARCHED):
        page.meta["search"] = {"exclude": True}
    else:
        rank = next((rank for pattern, rank in RANKS.items() if fnmatch(place, pattern)), 1.0)
        page.meta["search"] = {"boost": rank}
        page.meta["tags"] = SEARCHED_AS.get(place, [])
    if page.file.generated_by is not None:
        return markdown
    return with_links_of_the_site(markdown, f"docs/{place}", place, config)


def on_post_build(config: MkDocsConfig) -> None:
    """Let addresses of headings that are on another page now lead to it."""
    for old, others in SPLIT.items():
        file, headings = _headings(config, old)
        moved = {
            heading: f"../{other}/"
            for other in reversed(others)
            for heading in _headings(config, other)[1] - headings
        }
        script = (
            f"<script>const moved = {json.dumps(moved)}[location.hash.slice(1)]; "
            "if (moved) location.replace(moved + location.hash)</script>"
        )
        file.write_text(file.read_text("utf-8").replace("<head>", f"<head>{script}", 1), "utf-8")


def _headings(config: MkDocsConfig, page: str) -> tuple[Path, set[str]]:
    """The file of a page, and the anchors of its headings."""
    file = Path(config.site_dir, page, "index.html")
    return file, set(re.findall(r'<h[2-6] id="([^"]+)"', file.read_text("utf-8")))


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
    with _stand_ins("pyarrow", "pyspark"):
        for module in api_page.MODULES:
            pages = []
            for name, value in api_page.names(importlib.import_module(module)).items():
                if inspect.isclass(value) and value not in shown:
                    shown.add(value)
                    pages.append((name, f"api/{module}/{name}.md", f"{module}.{name}"))
            if pages:
                yield module, pages


@contextmanager
def _stand_ins(*packages: str) -> Iterator[None]:
    """Let modules that import these be imported without them, since only names of classes are needed."""
    finder = _StandIns({each for each in packages if importlib.util.find_spec(each) is None})
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _StandIns:
    """Finds modules of packages that are not installed. Each of their names is a class."""

    def __init__(self, packages: set[str]) -> None:
        self.packages = packages

    def find_spec(self, name: str, *_: object) -> Any:
        if name.partition(".")[0] not in self.packages:
            return None
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        return None

    def exec_module(self, module: Any) -> None:
        module.__getattr__ = lambda name: type(name, (_StandIn,), {})


class _StandIn:
    """Can be made, called and inherited from, and has every attribute."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __call__(self, *_: object, **__: object) -> _StandIn:
        return self

    def __getattr__(self, name: str) -> _StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return self
