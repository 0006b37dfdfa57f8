"""Write and read the bytes and the names of spool segments.

    1f2e3d4c 17 1767225600000 default/http {"type":"a.b"}   LF
    ───┬──── ─┬ ──────┬────── ─────┬────── ──────┬──────
    CRC-32C   │  accepted_ms   tenant/via      JSON: any bytes but LF
              └ bytes of JSON

The checksum covers all that follows its space, so a torn or changed line is recognised, and the
next line end is where reading goes on. Names carry the account: a sealed segment says how many
lines it holds and how many messages its writer acknowledged before it, so a missing segment is a
visible gap. tests/transport/test_segment.py flips every bit of a segment to hold us to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from google_crc32c import extend
from google_crc32c import value as crc32c

from penstock.transport.port import Message

_ACCEPTED_MS_MAX = 253_402_300_799_999  # the last millisecond of the year 9999
_ROUTE_BYTES_MAX = 64 + 1 + 16
_ROUTE = re.compile(r"([A-Za-z0-9._-]{1,64})/([a-z]{1,16})")
# Widths are what we write; a longer number is still read, so that no segment is ever overlooked.
_SEALED = re.compile(r"seg-(\d{13,})-([0-9a-f]{12})-(\d{12,})-(\d{7,})\.jsonl", re.ASCII)
_OPEN = re.compile(
    r"\.open-(\d{13,})-([0-9a-f]{12})-(\d{12,})-(\d{1,20})-(\d{1,20})\.jsonl", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Corrupt:
    """A line that is not what was written; `raw` is all of it, without its end."""

    raw: bytes
    detail: str  # one of a few sentences, so that dead letters group by cause


Line: TypeAlias = Message | Corrupt


def frame(message: Message) -> bytes:
    """One message as a line; ValueError if it could not be read back."""
    json = message.json
    if b"\n" in json:
        raise ValueError("expected JSON on one line, found a line feed in it")
    if not 0 <= message.accepted_ms <= _ACCEPTED_MS_MAX:
        raise ValueError(f"expected an instant from 1970 to 9999, found {message.accepted_ms}")
    route = _route(message.tenant_id, message.via)
    head = b"%d %d %b " % (len(json), message.accepted_ms, route)
    return b"%08x %b%b\n" % (extend(crc32c(head), json), head, json)


def parse(content: bytes) -> Iterator[Line]:
    """Every line in order; after a corrupt one, reading goes on at the next line end."""
    lines = content.split(b"\n")
    tail = lines.pop()
    yield from map(_read, lines)
    if tail:
        yield Corrupt(tail, "expected a line end, found the end of the segment")


def valid_prefix(content: bytes) -> int:
    """How many bytes there are up to the end of the last whole good line.

    Corrupt lines before it are kept: what follows them may have been acknowledged.
    """
    end = content.rfind(b"\n") + 1
    while end:
        begin = content.rfind(b"\n", 0, end - 1) + 1
        if isinstance(_read(content[begin : end - 1]), Message):
            return end
        end = begin
    return 0


def _read(raw: bytes) -> Line:
    body = raw[9:]
    if raw[:9] != b"%08x " % crc32c(body):
        return Corrupt(raw, "expected a checksum that fits the line, found another")
    parts = body.split(b" ", 3)
    if len(parts) == 4:
        length, accepted, route, json = parts
        at_ms = int(accepted) if accepted.isdigit() and len(accepted) <= 15 else -1
        parties = _parties(route) if len(route) <= _ROUTE_BYTES_MAX else None
        if parties is not None and length == b"%d" % len(json) and 0 <= at_ms <= _ACCEPTED_MS_MAX:
            return Message(json, at_ms, parties[0], parties[1])
    # The checksum fits, so this is no accident: a foreign hand wrote it.
    return Corrupt(raw, "expected length, time and route before the JSON, found something else")


@lru_cache(maxsize=4096)
def _route(tenant_id: str, via: str) -> bytes:
    text = f"{tenant_id}/{via}"
    if _ROUTE.fullmatch(text) is None:
        raise ValueError(f"expected a tenant and a door by their names, found {text[:90]!r}")
    return text.encode("ascii")


@lru_cache(maxsize=4096)
def _parties(route: bytes) -> tuple[str, str] | None:
    match = _ROUTE.fullmatch(route.decode("latin-1"))
    return (match[1], match[2]) if match else None


@dataclass(frozen=True, slots=True, order=True)
class SegmentName:
    """A sealed segment: complete, durable, and never changed again."""

    ms: int  # when it was begun; for one writer these never go back
    writer: str
    start: int  # how many messages its writer acknowledged before it
    lines: int

    @property
    def end(self) -> int:
        return self.start + self.lines

    @property
    def text(self) -> str:
        return f"seg-{self.ms:013d}-{self.writer}-{self.start:012d}-{self.lines:07d}.jsonl"

    @classmethod
    def parse(cls, text: str) -> SegmentName | None:
        """The name that `text` is, or None if it is not one of ours."""
        match = _SEALED.fullmatch(text)
        if match is None:
            return None
        ms, writer, start, lines = match.groups()
        return cls(int(ms), writer, int(start), int(lines))


@dataclass(frozen=True, slots=True, order=True)
class OpenName:
    """A segment that is being written, by a process that can be told alive from dead.

    The leading dot hides it from Spark.
    """

    ms: int
    writer: str
    start: int
    pid: int
    pid_start: int

    @property
    def text(self) -> str:
        start = f"{self.ms:013d}-{self.writer}-{self.start:012d}"
        return f".open-{start}-{self.pid}-{self.pid_start}.jsonl"

    def seal(self, lines: int) -> SegmentName:
        """Its final name. Whoever seals it, with the same lines it is the same name."""
        return SegmentName(self.ms, self.writer, self.start, lines)

    @classmethod
    def parse(cls, text: str) -> OpenName | None:
        """The name that `text` is, or None if it is not one of ours."""
        match = _OPEN.fullmatch(text)
        if match is None:
            return None
        ms, writer, start, pid, pid_start = match.groups()
        return cls(int(ms), writer, int(start), int(pid), int(pid_start))
