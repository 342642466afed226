from __future__ import annotations

import builtins
import re
import socket
from importlib.metadata import version

import pytest

from fakeamqp.cli import main


def test_the_version_is_that_of_the_distribution(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["--version"])
    assert leaving.value.code == 0
    assert capsys.readouterr().out == f"fakeamqp {version('fakeamqp')}\n"


def test_without_a_command_the_usage_is_shown(capsys):
    with pytest.raises(SystemExit) as leaving:
        main([])
    assert leaving.value.code == 2
    assert "usage: fakeamqp" in capsys.readouterr().err


def test_the_help_of_serve_quotes_the_line_to_wait_for(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["serve", "--help"])
    assert leaving.value.code == 0
    assert "amqp://guest:guest@127.0.0.1:PORT/%2F" in "".join(capsys.readouterr().out.split("\n"))


def test_demo_prints_redelivery_errors_and_restart(capsys):
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    for words in (
        "redelivered=True",
        "404",
        "NOT_FOUND - no queue 'no-such-queue'",
        "restarted",
        "channel.close",
    ):
        assert words in out


def test_demo_without_pika_prints_install_command(capsys, monkeypatch):
    real_import = builtins.__import__

    def without_pika(name, *arguments, **keywords):
        if name.split(".")[0] == "pika":
            raise ImportError(name)
        return real_import(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without_pika)
    assert main(["demo"]) == 1
    assert "pip install 'fakeamqp[pika]'" in capsys.readouterr().err


def test_the_doctor_finds_this_machine_ready(capsys):
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    subjects = {line[9:].split("  ")[0].strip(): line for line in lines}
    assert subjects["broker"].startswith("ok ") and "starts, answers and stops" in subjects["broker"]
    assert version("pika") in subjects["pika"]
    assert lines[-1].startswith("Ready")


def test_doctor_prints_install_command_of_missing_library(capsys, monkeypatch):
    monkeypatch.setattr(
        "fakeamqp.cli.doctor._LIBRARIES", (("no-such-library", "pip install no-such-library"),)
    )
    assert main(["doctor"]) == 0
    assert "missing  no-such-library" in (out := capsys.readouterr().out)
    assert "not installed: pip install no-such-library" in out


def test_doctor_prints_java_path_or_java_home_hint(capsys, monkeypatch, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["doctor"]) == 0
    assert re.search(rf"^ok +Java +21\.0\.1 at {java}$", capsys.readouterr().out, re.MULTILINE)
    java.unlink()
    assert main(["doctor"]) == 0
    assert re.search(r"^missing +Java +.*JAVA_HOME", capsys.readouterr().out, re.MULTILINE)


def test_the_doctor_finds_a_machine_without_loopback_not_ready(capsys, monkeypatch):
    def refuse(self, address):
        raise OSError(99, "Cannot assign requested address")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert (
        "failed   IPv4 loopback" in out
        and "cannot listen on 127.0.0.1: Cannot assign requested address" in out
    )
    assert "Not ready: IPv4 loopback, broker." in out
