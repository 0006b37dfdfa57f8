"""Read the README's tour: every command, and whether what it prints is what the page shows.

    ```console blocks ──▶ Step(command, shown) ── is_printed(text) ──▶ yes | no

What differs from run to run is left open: ids, instants, roots, and whatever the page itself leaves
out with `…`. Everything else has to be printed as it stands. A long import is made short.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LOOSE = re.compile(
    r"(?P<instant>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"
    r"|(?P<id>[0-9a-f]{8}-(?:[0-9a-f]{4}-)+(?=\Z))"
    r"|(?P<root>[0-9a-f]{64})"
    r"|(?P<seconds>(?<=seconds  )[\d.]+)"
    r"|(?P<bytes>(?<=bytes    )\d+)"
    r"|(?P<seals>\d+(?= seals| signed))"
    r"|(?P<line>\s*\n\s*)"
    r"|(?P<space> +)"
)
_INSTEAD = {
    "instant": r"[\d-]{10}T[\d:.]{12}Z",
    "id": r"[0-9a-f]{8}-(?:[0-9a-f]{4}-)+",
    "root": r"[0-9a-f]{64}",
    "seconds": r"[\d.]+",
    "bytes": r"\d+",
    "seals": r"\d+",
    "line": r"\s*",  # the page breaks long lines
    "space": r" +",  # columns are as wide as what stands in them
}


@dataclass(frozen=True, slots=True)
class Step:
    """One command of the tour, and what the page shows under it."""

    command: str
    shown: str

    def is_printed(self, text: str) -> bool:
        """Whether `text` is what is shown, from its beginning to its end."""
        first, *rest = self.shown.strip().split("…")
        return _in_order([rf"\A\s*{_loosened(first)}", *map(_loosened, rest)], text, end=r"\s*\Z")

    def is_among(self, text: str) -> bool:
        """Whether every line that is shown was printed, in this order, with others between."""
        pieces = [piece for line in self.shown.splitlines() for piece in line.split("…")]
        return _in_order([_loosened(piece) for piece in pieces], text)


def _in_order(pieces: Sequence[str], text: str, *, end: str = "") -> bool:
    at = 0
    for number, piece in enumerate(pieces, 1):
        found = re.compile(piece + (end if number == len(pieces) else "")).search(text, at)
        if found is None:
            return False
        at = found.end()
    return True


def steps() -> list[Step]:
    """Every step of the tour after the start, in order."""
    page = _shortened(README.read_text("utf-8"))
    _, *blocks = _BLOCK.findall(page[page.index("## A tour of five minutes") :])
    return [step for block in blocks for step in _steps(block)]


def _shortened(page: str) -> str:
    """The page with two thousand events to import where it has two hundred thousand."""
    return re.sub(r"\b([24])000(\d\d)\b", r"\g<1>0\2", page.replace("200_000", "2_000"))


def _steps(block: str) -> list[Step]:
    found: list[Step] = []
    lines = block.splitlines()
    while lines:
        command = lines.pop(0).removeprefix("$ ")
        while not _is_whole(command):
            command += f"\n{lines.pop(0)}"
        shown = []
        while lines and not lines[0].startswith("$ "):
            shown.append(lines.pop(0))
        found.append(Step(command, "\n".join(shown)))
    return found


def _is_whole(command: str) -> bool:
    """Whether the shell would run it as it is, and not wait for another line."""
    heard = subprocess.run(["bash", "-n"], input=f"{command}\n", capture_output=True, text=True)
    return heard.returncode == 0 and not heard.stderr and not command.endswith("\\")


def _loosened(text: str) -> str:
    pattern, at = "", 0
    for match in _LOOSE.finditer(text):
        pattern += re.escape(text[at : match.start()]) + _INSTEAD[str(match.lastgroup)]
        at = match.end()
    return pattern + re.escape(text[at:])
