"""Why there is no RabbitMQ of a series: each reason says what is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compat_tests.differential import installations
from compat_tests.differential.installations import Installation, Unavailable

pytestmark = pytest.mark.skipif(os.name != "posix", reason="nodes are started on POSIX systems only")


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which root may do everything, without an installed RabbitMQ."""
    monkeypatch.setattr(installations, "_installed", lambda: iter(()))
    monkeypatch.setattr(installations, "_failed", lambda *_: "")
    monkeypatch.setattr(installations.sys, "platform", "linux")
    monkeypatch.setattr(installations.os, "geteuid", lambda: 0)
    monkeypatch.setattr(installations.shutil, "which", lambda program: f"/bin/{program}")
    monkeypatch.setenv("FAKEAMQP_RABBITMQ_CACHE", str(tmp_path))
    installations._found.cache_clear()
    yield tmp_path
    installations._found.cache_clear()


def unpacked(cache: Path, suite: str, version: str) -> Path:
    """A root as it looks when a package has been unpacked into it."""
    root = cache / f"rabbitmq-{suite}"
    home = root / "usr/lib/rabbitmq/lib" / f"rabbitmq_server-{version}"
    for folder in (home / "sbin", home / "plugins" / f"rabbit-{version}"):
        folder.mkdir(parents=True)
    (home / "sbin" / "rabbitmq-server").touch()
    (root / ".unpacked").touch()
    return home


def test_unpacked_rabbitmq_is_found_by_its_series(machine: Path) -> None:
    home = unpacked(machine, "forky", "4.3.6")
    found = installations.find("4.3")
    assert (found.home, found.version, found.series) == (home, "4.3.6", "4.3")
    assert found.seen(machine) == Path("/node")
    assert installations.obstacle("4.3") is None


def test_installed_rabbitmq_is_preferred_to_unpacked_rabbitmq(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked(machine, "trixie", "4.0.5")
    installed = Installation(unpacked(machine, "installed", "4.0.9"))
    monkeypatch.setattr(installations, "_installed", lambda: iter((installed,)))
    assert installations.find("4.0") is installed
    assert installations.find() is installed
    assert installed.seen(machine) == machine


def test_series_replaced_by_newer_series_in_release_is_reported(machine: Path) -> None:
    unpacked(machine, "forky", "4.4.1")
    assert "forky has RabbitMQ 4.4.1: it has moved on from 4.3" in str(installations.obstacle("4.3"))


def test_newer_series_of_release_is_found(machine: Path) -> None:
    home = unpacked(machine, "forky", "4.4.1")
    assert installations.find("4.4").home == home


def test_series_of_no_known_release_is_reported() -> None:
    assert "is known to have RabbitMQ 4.2; known are 3.10 (bookworm)" in str(installations.obstacle("4.2"))


def test_missing_rabbitmq_package_is_reported() -> None:
    assert installations.obstacle() == "rabbitmq-server is not installed"
    with pytest.raises(Unavailable, match="is not installed"):
        installations.find()


def test_unpacked_rabbitmq_without_root_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installations.os, "geteuid", lambda: 1000)
    assert "RabbitMQ 4.0 of Debian trixie is unpacked and run by root only" in str(
        installations.obstacle("4.0")
    )


def test_missing_mmdebstrap_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        installations.shutil, "which", lambda program: None if program == "mmdebstrap" else "/x"
    )
    assert "needs mmdebstrap, which is not installed" in str(installations.obstacle("4.3"))


def test_missing_namespaces_are_reported_with_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installations, "_failed", lambda *_: "unshare failed: Operation not permitted")
    assert "not to be had here: unshare failed: Operation not permitted" in str(installations.obstacle("4.3"))


def test_unavailable_archive_is_reported_and_tried_only_once(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def failed(command: list[str], *_: object) -> str:
        tried.append(command[0])
        return "E: Unable to locate package" if command[0] == "mmdebstrap" else ""

    monkeypatch.setattr(installations, "_failed", failed)
    for _ in range(2):
        reason = str(installations.obstacle("4.3"))
        assert "cannot be had from the archive: E: Unable to locate package" in reason
    assert tried.count("mmdebstrap") == 1
    assert not (machine / "rabbitmq-forky").exists()
