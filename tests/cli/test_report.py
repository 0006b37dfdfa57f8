"""Hold the printing to its promises: one line per thing, quiet off a terminal, safe on one."""

from __future__ import annotations

import io
import json
import sys
from decimal import Decimal

import pytest

from penstock.base.errors import Fault
from penstock.cli import report


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_columns_line_up_and_the_last_one_is_not_padded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report.columns([["a", 1, "x"], ["long", 22, None], ["b", "", "y"]])

    assert capsys.readouterr().out == "a     1   x\nlong  22  -\nb     -   y\n"


def test_no_rows_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    report.columns([])

    assert capsys.readouterr().out == ""


def test_a_severity_colours_its_line_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report.line("error", "x", tone="error")
    plain = capsys.readouterr().out
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)

    report.columns([["7", "error"], ["8", "info"]], tone=1)

    assert plain == "error  x\n"
    assert terminal.getvalue() == "\x1b[31m7  error\x1b[0m\n8  info\n"


def test_json_keeps_every_digit_of_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    report.document({"n": Decimal("1234567890123456.7890123456789"), "i": 2**62, "t": "ä"})

    out = capsys.readouterr().out
    assert out == '{"n":1234567890123456.7890123456789,"i":4611686018427387904,"t":"ä"}\n'
    assert json.loads(out)["i"] == 2**62


def test_only_the_first_faults_are_named_and_the_rest_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    faults = [Fault(f"/payload/{n}", "is wrong") for n in range(5)]

    report.failure("payload_invalid", "it does not fit", "Correct it.", faults)

    assert capsys.readouterr().err.splitlines() == [
        (
            "error  payload_invalid: it does not fit (/payload/0 is wrong; /payload/1 is wrong; "
            "/payload/2 is wrong; and 2 more)"
        ),
        "  fix  Correct it.",
    ]


def test_a_fault_that_the_detail_names_already_is_not_repeated(
    capsys: pytest.CaptureFixture[str],
) -> None:
    faults = [Fault("/payload/key", "is missing"), Fault("/payload/n", "is text")]

    report.failure("payload_invalid", "/payload/key: is missing; kept", "Correct it.", faults)

    first = capsys.readouterr().err.splitlines()[0]
    assert first == "error  payload_invalid: /payload/key: is missing; kept (/payload/n is text)"


def test_a_failure_cannot_write_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    report.failure("x", "evil \x1b[2J", "none\x07")

    assert capsys.readouterr().err == "error  x: evil \\x1b[2J\n  fix  none\\x07\n"


def test_progress_is_silent_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with report.progress("importing", 100) as advance:
        advance(50)

    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


def test_progress_draws_on_stderr_when_somebody_watches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")

    with report.progress("importing", 100) as advance:
        advance(100)

    assert "importing" in terminal.getvalue()
    assert capsys.readouterr().out == ""
