"""Hold every command to how it speaks: data on stdout, failures in two lines, codes 0, 1, 2."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.base.errors import (
    EventRefused,
    Fault,
    NotInProfile,
    PenstockError,
    QueueUnavailable,
    SetupIncomplete,
)
from penstock.cli import main
from penstock.cli.refused import Refused

VERBS = (
    "up", "serve", "ingress", "worker", "publish", "tail", "events", "dead-letters", "import",
    "queue", "ledger", "registry", "token", "doctor", "settings", "version",
)  # fmt: skip
LEAVES = (
    "up", "publish", "tail", "events list", "events show", "dead-letters list",
    "dead-letters groups", "dead-letters show", "dead-letters redrive", "import", "queue write",
    "queue status", "ledger", "registry list", "registry show", "registry diff", "registry check",
    "registry register", "registry docs", "schemas list", "token create",
    "token list", "token revoke", "doctor", "settings", "version",
)  # fmt: skip


def test_help_names_every_verb_and_not_the_hidden_one(run: Any) -> None:
    ran = run("--help")

    assert ran.code == 0
    assert ran.err == ""
    listed = [line.split()[0] for line in ran.out.splitlines() if line.startswith("  ")]
    assert set(VERBS) <= set(listed)
    assert "demo" not in listed


@pytest.mark.parametrize("verb", LEAVES)
def test_every_verb_that_prints_data_can_print_json(run: Any, verb: str) -> None:
    ran = run(*verb.split(), "--help")

    assert ran.code == 0
    assert "--json" in ran.out


@pytest.mark.parametrize(
    "words",
    [
        ["publish"],
        ["publish", "a.b", "--source"],
        ["publish", "a.b", "--source", "s", "--tag", "no-equals-sign"],
        ["publish", "a.b", "--source", "s", "--payload", "@/no/such/file"],
        ["nonsense"],
        ["events", "list", "--limit", "0"],
        ["events", "list", "--limit", "many"],
        ["tail", "--since", "yesterday"],
        ["dead-letters", "redrive"],
        ["import", "/no/such/file.jsonl"],
        ["queue", "write", "/no/such/file"],
        ["queue", "write", "-", "--tenant", "not a name"],
        ["registry", "register", "a.b", "/no/such/file"],
        ["registry", "register", "a.b", "-", "--override"],
        ["registry", "check", "a.b", "/no/such/file"],
        ["registry", "diff", "a.b", "0"],
        ["--wrong-option"],
    ],
)
def test_misuse_is_two_lines_and_exit_2(run: Any, words: list[str]) -> None:
    ran = run(*words)

    assert ran.code == 2
    assert ran.out == ""
    first, second = ran.err.splitlines()
    assert first.startswith("error  misused: ")
    assert second.startswith("  fix  Run `penstock")


@pytest.mark.parametrize(
    ("error", "first", "second"),
    [
        (
            SetupIncomplete("expected Java 17, found none"),
            "error  setup_incomplete: expected Java 17, found none",
            f"  fix  {SetupIncomplete.remedy}",
        ),
        (
            QueueUnavailable("expected room, found none"),
            "error  queue_unavailable: expected room, found none",
            f"  fix  {QueueUnavailable.remedy}",
        ),
        (
            EventRefused(
                "it does not fit",
                reason="payload_invalid",
                remedy="Correct it.",
                faults=(Fault("/payload/v", "is text"),),
                dead_letter_id="d-1",
            ),
            "error  payload_invalid: it does not fit; kept as dead letter d-1 (/payload/v is text)",
            "  fix  Correct it.",
        ),
        (
            NotInProfile("duplicate_key", "expected each key once, found a twice", pointer="/a"),
            "error  duplicate_key: expected each key once, found a twice (at /a)",
            "  fix  Send UTF-8 JSON within the limits listed in docs/events.md.",
        ),
        (
            SetupIncomplete("PostgreSQL did not start; the log ends with:\nFATAL: x\n  y\n"),
            "error  setup_incomplete: PostgreSQL did not start; the log ends with: · FATAL: x · y",
            f"  fix  {SetupIncomplete.remedy}",
        ),
        (
            Refused("not_found", "expected an event, found none", "Check the id."),
            "error  not_found: expected an event, found none",
            "  fix  Check the id.",
        ),
    ],
)
def test_a_refusal_is_two_lines_and_exit_1(
    run: Any,
    monkeypatch: pytest.MonkeyPatch,
    error: PenstockError | Refused,
    first: str,
    second: str,
) -> None:
    def refuse(_environ: object) -> None:
        raise error

    monkeypatch.setattr("penstock.cli.commands.settings.load_settings", refuse)

    ran = run("settings")

    assert ran.code == 1
    assert ran.out == ""
    assert ran.err.splitlines() == [first, second]


def test_an_unknown_setting_is_refused_with_its_nearest_name(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_PROT", "1")

    ran = run("settings")

    assert ran.code == 1
    assert "Did you mean PENSTOCK_PORT?" in ran.err


def test_an_interrupt_is_quiet_and_exits_130(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_environ: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("penstock.cli.commands.settings.load_settings", interrupt)

    assert (run("settings").code, run("settings").err) == (130, "")


def test_a_reader_that_has_seen_enough_is_no_failure(home: Path) -> None:
    command = f"{sys.executable} -m penstock.cli settings | head -n 1"

    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith("PENSTOCK_DATA_DIR")


def _interrupted(waiting: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Press Ctrl-C until it ends: one that meets Python inside a destructor is lost."""
    for _ in range(6):
        waiting.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return waiting.communicate(timeout=5)
    waiting.kill()
    raise AssertionError("six times Ctrl-C did not end it")


def test_ctrl_c_in_a_waiting_command_leaves_no_traceback(home: Path) -> None:
    reader, writer = os.pipe()
    waiting = subprocess.Popen(
        [sys.executable, "-m", "penstock.cli", "queue", "write", "-"],
        stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=home,
    )  # fmt: skip
    os.close(reader)
    os.write(writer, b"x\n" * 4)
    spool = home / ".penstock" / "spool"
    while not spool.exists() and waiting.poll() is None:
        time.sleep(0.01)

    out, err = _interrupted(waiting)
    os.close(writer)

    assert waiting.returncode == 130
    assert out == b""
    assert err.splitlines()[1:] == [], "one line of talk: nothing has run in this folder yet"


def test_the_commands_start_without_loading_spark_or_an_http_client() -> None:
    program = (
        "import sys; from penstock.cli import main; "
        "print([m for m in ('pyspark', 'httpx', 'fastapi', 'psycopg') if m in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stdout == "[]\n", done.stderr


def test_every_command_has_a_sentence_of_help() -> None:
    commands = [*main.app.registered_commands]
    for group in main.app.registered_groups:
        assert group.typer_instance is not None
        commands += group.typer_instance.registered_commands

    assert [c.name for c in commands if c.callback is None or not c.callback.__doc__] == []
