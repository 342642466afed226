"""The site of the documentation: what its search finds, and what its navigation says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.docs.pages import ROOT

QUESTIONS = {
    "reconnect": "recipes/lost-connection/",
    "consumer does not reconnect": "recipes/lost-connection/",
    "connection lost": "recipes/lost-connection/",
    "why does my test hang": "troubleshooting/",
    "test hangs": "troubleshooting/",
    "WaitTimeout": "troubleshooting/",
    "login refused": "troubleshooting/",
    "xdist": "troubleshooting/",
    "fault never fired": "troubleshooting/",
    "delayed message": "support/",
    "x-delivery-limit": "support/",
    "consumer timeout": "support/",
    "celery": "recipes/celery/",
    "ttl": "time/",
    "nack": "fault-injection/",
    "slow network": "fault-network/",
    "real rabbitmq": "pytest-real-broker/",
    "environment variable": "pytest-environment/",
    "testcontainers": "recipes/coming-from-testcontainers/",
}
"""What readers search for, and the page that is to be among the first three results."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def results(site: Path) -> dict[str, list[str]]:
    """The pages that the search finds, for each question."""
    if (node := shutil.which("node")) is None:
        pytest.skip("Node.js runs the search of the site, and is not installed")
    command = [node, str(Path(__file__).with_name("search.js")), str(site)]
    done = subprocess.run(
        command, input=json.dumps(list(QUESTIONS)), capture_output=True, text=True, check=True
    )
    return dict(zip(QUESTIONS, json.loads(done.stdout), strict=True))


def test_search_has_right_page_among_first_three_results(results: dict[str, list[str]]) -> None:
    assert {
        question: pages[:3] for question, pages in results.items() if QUESTIONS[question] not in pages[:3]
    } == {}


def test_search_finds_no_page_of_records(results: dict[str, list[str]]) -> None:
    records = ("attempts/", "changelog/", "conformance", "simulation-findings/")
    assert [page for pages in results.values() for page in pages if page.startswith(records)] == []


def test_pages_of_navigation_have_titles_of_their_own_only() -> None:
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    entries = text.partition("\nnav:\n")[2].splitlines()
    assert [each for each in entries if each.endswith(".md") and ": " in each] == ["  - Home: index.md"]


_CLASSES = """
import importlib.machinery, json, runpy, sys

missing = set(sys.argv[1:])

class Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in missing else super().find_spec(name, path, target)

ours = importlib.machinery.PathFinder
sys.meta_path[:] = [Finder if each is ours else each for each in sys.meta_path]
hook = runpy.run_path("docs/_site/hook.py")
print(json.dumps([place for _, pages in hook["_public_classes"]() for _, place, _ in pages]))
"""


def test_site_has_page_for_each_public_class_without_pyspark() -> None:
    pytest.importorskip("pyspark")

    def classes(*missing: str) -> list[str]:
        command = [sys.executable, "-c", _CLASSES, *missing]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        places: list[str] = json.loads(done.stdout)
        return places

    found = classes("pyarrow", "pyspark")
    assert "api/fakeamqp.spark.testing/AmqpStream.md" in found
    assert found == classes()


def test_old_address_of_moved_heading_leads_to_its_page(site: Path) -> None:
    page = (site / "fault-injection" / "index.html").read_text("utf-8")
    assert '"repeating-a-run": "../fault-chaos/"' in page
