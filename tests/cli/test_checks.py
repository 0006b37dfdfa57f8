"""Hold the doctor to what a fact means and to how it says it."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.checks import find_java, find_pyspark, java_major, of_clock, of_disk, of_python


@pytest.mark.parametrize(
    ("printed", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("command not found", None),
    ],
)
def test_the_java_version_is_read_from_what_java_prints(printed: str, major: int | None) -> None:
    assert java_major(printed) == major


def fake_java(folder: Path, prints: str) -> dict[str, str]:
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{prints}' >&2\n")
    java.chmod(0o755)
    return {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


def test_java_17_on_the_path_is_enough(tmp_path: Path) -> None:
    assert find_java(fake_java(tmp_path, 'openjdk version "17.0.1"')).state == "ok"


def test_java_11_is_missing_with_the_command_that_installs_a_newer_one(tmp_path: Path) -> None:
    check = find_java(fake_java(tmp_path, 'openjdk version "11.0.1"'))

    assert check.state == "missing"
    assert "found 11" in check.what
    assert "apt-get install" in check.fix


def test_java_home_wins_over_the_path(tmp_path: Path) -> None:
    environ = fake_java(tmp_path / "old", 'openjdk version "11.0.1"')
    fake_java(tmp_path / "new", 'openjdk version "21.0.1"')

    check = find_java({**environ, "JAVA_HOME": str(tmp_path / "new")})

    assert (check.state, "Java 21" in check.what) == ("ok", True)


@pytest.mark.parametrize("environ", [{"PATH": "/nowhere"}, {"JAVA_HOME": "/nowhere"}])
def test_no_java_is_missing(environ: dict[str, str]) -> None:
    assert find_java(environ).state == "missing"


def test_the_installed_pyspark_is_the_one_that_was_tried() -> None:
    assert find_pyspark().state == "ok"


def test_an_old_python_is_missing() -> None:
    assert of_python((3, 10, 9)).state == "missing"
    assert of_python((3, 11, 0)).state == "ok"


def test_little_disk_is_a_warning_and_not_a_stop() -> None:
    assert of_disk(10_000_000).state == "warn"
    assert of_disk(10_000_000_000).state == "ok"


def test_a_clock_before_this_program_was_written_is_a_warning() -> None:
    assert of_clock(datetime(1970, 1, 1, tzinfo=UTC)).state == "warn"
    assert of_clock(datetime(2026, 3, 1, tzinfo=UTC)).state == "ok"


def test_the_doctor_says_one_line_per_thing_and_creates_nothing(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_PORT", "0")

    ran = run("doctor")

    states = [line.split("  ")[0] for line in ran.out.splitlines()]
    assert len(states) == 8
    assert set(states) <= {"ok", "warn", "missing"}
    assert ran.err == ""
    assert list(home.iterdir()) == []


def test_the_doctor_exits_1_when_something_is_missing_and_says_the_fix(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("PENSTOCK_PORT", str(taken.getsockname()[1]))
        ran = run("doctor")
        as_json = run("doctor", "--json")

    (line,) = [line for line in ran.out.splitlines() if line.startswith("missing")]
    assert ran.code == as_json.code == 1
    assert "  fix: Stop what listens there" in line
    assert [c["state"] for c in as_json.json["checks"]].count("missing") == 1


def test_the_doctor_reports_a_database_that_does_not_answer_without_its_password(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_PORT", "0")
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", "postgresql://ann:hunter2@127.0.0.1:1/x")

    ran = run("doctor")

    assert ran.code == 1
    (line,) = [line for line in ran.out.splitlines() if line.startswith("missing")]
    assert line.startswith("missing  PostgreSQL at PENSTOCK_DATABASE_URL (connection failed: ")
    assert "Connection refused)  fix: start that server" in line
    assert "hunter2" not in ran.out + ran.err
