"""Print: data on stdout, talk on stderr, a progress bar only where somebody watches.

    line("accepted", id)    one thing, one line; columns two spaces apart
    document(value)         the same as JSON, for programs
    say(text)               talk
    failure(…)              error  code: what
                              fix  what to do

Events come from anywhere, so control characters are written out and never reach the terminal.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

import orjson

from penstock.base.errors import Fault
from penstock.envelope.envelope import JsonObject, JsonValue

_COLOURS = {
    "critical": "1;31", "error": "31", "warning": "33", "debug": "2",
    "rejected": "31", "missing": "31", "warn": "33", "ok": "32",
}  # fmt: skip
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_FAULTS_SHOWN = 3


class ReaderGone(Exception):
    """Whoever read our output has seen enough (`… | head`): that is no failure."""


def clean(text: str) -> str:
    """The text on one line, with every control character spelt out."""
    return text.translate(_CONTROLS)


def line(*cells: str | int | None, tone: str = "") -> None:
    """Write one thing to stdout; `tone` (a severity or a state) colours it on a terminal."""
    text = "  ".join("-" if cell is None or cell == "" else clean(str(cell)) for cell in cells)
    colour = _COLOURS.get(tone)
    if colour and sys.stdout.isatty():
        text = f"\x1b[{colour}m{text}\x1b[0m"
    _write(text)


def columns(rows: Sequence[Sequence[str | int | None]], *, tone: int | None = None) -> None:
    """Write one line per row, cells aligned; `tone` is the column whose word colours the row."""
    shown = [["-" if cell is None or cell == "" else clean(str(cell)) for cell in r] for r in rows]
    widths = [max(len(row[n]) for row in shown) for n in range(len(shown[0]))] if shown else []
    for row in shown:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        padded[-1] = row[-1]
        line(*padded, tone=row[tone] if tone is not None else "")


def fields(value: JsonObject) -> None:
    """Write an object as one line per field: its name, then its value."""
    columns(
        [
            [name, found if isinstance(found, str) else to_json(found)]
            for name, found in value.items()
        ]
    )


def document(value: JsonValue) -> None:
    """Write a value to stdout as one line of JSON."""
    _write(to_json(value))


def _write(text: str) -> None:
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGone from None


def say(text: str) -> None:
    """Write talk to stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def warn(lines: Sequence[str]) -> None:
    """Write what somebody should know to stderr, a line each."""
    for each in lines:
        say(clean(each))


def failure(code: str, detail: str, remedy: str, faults: Sequence[Fault] = ()) -> None:
    """Say what failed and what to do about it: two lines, always."""
    say(f"error  {code}: {_one_line(_with_faults(detail, faults))}")
    say(f"  fix  {_one_line(remedy)}")


def _with_faults(detail: str, faults: Sequence[Fault]) -> str:
    places = [
        f"{fault.pointer or '(root)'} {fault.detail}"
        for fault in faults
        if fault.detail not in detail  # most details name the first faults themselves
    ]
    if not places:
        where = next((fault.pointer for fault in faults if fault.pointer), "")
        return f"{detail} (at {where})" if where and where not in detail else detail
    more = len(places) - _FAULTS_SHOWN
    rest = f"; and {more} more" if more > 0 else ""
    return f"{detail} ({'; '.join(places[:_FAULTS_SHOWN])}{rest})"


def _one_line(text: str) -> str:
    return clean(" · ".join(part.strip() for part in text.splitlines() if part.strip()))


def to_json(value: JsonValue) -> str:
    """The value as JSON on one line; a number keeps every digit it came with."""
    return orjson.dumps(value, default=_exactly).decode()


def _exactly(value: object) -> object:
    if isinstance(value, Decimal):
        return orjson.Fragment(str(value))
    raise TypeError(f"expected a JSON value, found {type(value).__name__}")


@contextlib.contextmanager
def progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Count long work; the bar is drawn on stderr, and only when that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _amount: None
        return
    from rich import progress as bars
    from rich.console import Console

    shown = bars.Progress(
        bars.TextColumn("{task.description}"), bars.BarColumn(), bars.TaskProgressColumn(),
        bars.DownloadColumn(), bars.TransferSpeedColumn(), bars.TimeRemainingColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    with shown:
        task = shown.add_task(label, total=total)
        yield lambda amount: shown.update(task, advance=amount)
