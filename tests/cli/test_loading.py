"""Hold `import` and `queue write` to every line: verbatim, in order, none lost, none made up."""

from __future__ import annotations

import io
import json
import random
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.backoff import Backoff
from penstock.base.errors import NotInProfile, QueueUnavailable
from penstock.cli.lines import batches
from penstock.cli.spooling import LineWriter, Written
from penstock.transport.port import Message
from penstock.transport.segment import parse

SPOOL = Path(".penstock") / "spool" / "apphub_event_ingress_queue"


@pytest.fixture
def spool(home: Path) -> Path:
    """The queue of a Penstock that has run here before."""
    (home / SPOOL).mkdir(parents=True)
    return home / SPOOL


def on_spool(home: Path) -> list[Message]:
    """Every message that lies on the spool, oldest segment first."""
    found = []
    for segment in sorted((home / SPOOL).glob("seg-*.jsonl")):
        for line in parse(segment.read_bytes()):
            assert isinstance(line, Message)
            found.append(line)
    return found


@given(
    st.lists(st.binary(max_size=40).filter(lambda line: b"\n" not in line), max_size=50),
    st.integers(1, 7),
    st.integers(1, 100),
    st.booleans(),
)
def test_batches_hold_every_line_that_is_not_blank_in_order(
    lines: list[bytes], lines_max: int, bytes_max: int, ends: bool
) -> None:
    content = b"\n".join(lines) + (b"\n" if ends and lines else b"")

    found = list(batches(io.BytesIO(content), lines_max=lines_max, bytes_max=bytes_max))

    kept = [line for batch in found for line in batch.lines]
    assert kept == [line for line in content.split(b"\n") if line.strip(b"\r \t")]
    assert sum(batch.size for batch in found) == len(content)
    assert all(len(batch.lines) <= lines_max for batch in found)
    at = 1
    for batch in found:
        assert batch.first_line == at
        at = batch.last_line + 1


def test_reading_can_go_on_at_a_line() -> None:
    (batch,) = batches(io.BytesIO(b"a\nb\n\nc\n"), from_line=2)

    assert batch.lines == (b"b", b"c")


def test_what_stands_before_a_line_that_is_too_long_is_not_lost() -> None:
    reading = batches(io.BytesIO(b"a\nb\n" + b"x" * 11 + b"\nc\n"), line_bytes_max=10)

    assert next(reading).lines == (b"a", b"b")
    with pytest.raises(NotInProfile, match="line 3: expected at most 10 bytes"):
        next(reading)


def test_a_line_of_exactly_the_limit_is_read() -> None:
    (batch,) = batches(io.BytesIO(b"x" * 10 + b"\n"), line_bytes_max=10)

    assert batch.lines == (b"x" * 10,)


class Queue:
    """A transport that is full now and then."""

    def __init__(self, *, full_times: int = 0, broken_after: int | None = None) -> None:
        self.sent: list[Message] = []
        self.full_times = full_times
        self.broken_after = broken_after

    def send(self, messages: Any) -> Future[None]:
        future: Future[None] = Future()
        if self.broken_after is not None and len(self.sent) >= self.broken_after:
            future.set_exception(QueueUnavailable("the disk is gone"))
        elif self.full_times > 0:
            self.full_times -= 1
            future.set_exception(QueueUnavailable("full", disk_full=True))
        else:
            self.sent.extend(messages)
            future.set_result(None)
        return future

    def close(self) -> None:
        """Nothing to let go of."""


def writer(queue: Queue, said: list[str]) -> LineWriter:
    return LineWriter(
        queue, tenant_id="default", via="import", say=said.append, sleep=lambda _s: None
    )


def test_a_full_queue_is_waited_for_and_nothing_is_written_twice() -> None:
    queue, said = Queue(full_times=3), list[str]()
    content = b"".join(b"%d\n" % n for n in range(100))

    *_, last = writer(queue, said).write(batches(io.BytesIO(content), lines_max=7))

    assert sorted(int(message.json) for message in queue.sent) == list(range(100))
    assert last == Written(messages=100, size=len(content), last_line=100)
    assert said[0] == "the queue is full; waiting for the ingress to make room"


def test_a_broken_queue_ends_the_writing_at_what_is_surely_there() -> None:
    queue = Queue(broken_after=4)
    progress: list[Written] = []
    writing = writer(queue, []).write(batches(io.BytesIO(b"a\nb\nc\nd\ne\nf\n"), lines_max=2))

    with pytest.raises(QueueUnavailable, match="the disk is gone"):
        progress.extend(writing)

    assert progress[-1].last_line == 4


def test_a_queue_that_stays_full_is_given_up() -> None:
    with pytest.raises(QueueUnavailable, match="full"):
        list(writer(Queue(full_times=10_000), []).write(batches(io.BytesIO(b"a\n"))))


HOSTILE = [
    b'{"type": "a.b"}',
    b"not json at all",
    b'{"a":1,"a":2}',
    b"\xff\xfe",
    b'"\\u0000"',
    b"[" * 100,
    b'{"n":1e400}',
    b"  spaces kept  ",
    b"carriage return kept\r",
]


@pytest.mark.usefixtures("spool")
def test_queue_write_puts_every_line_on_the_queue_verbatim(run: Any, home: Path) -> None:
    (home / "raw.txt").write_bytes(b"\n".join(HOSTILE) + b"\n\n")

    ran = run("queue", "write", "raw.txt")

    assert (ran.code, ran.out, ran.err) == (0, f"written  {len(HOSTILE)}\n", "")
    found = on_spool(home)
    assert [message.json for message in found] == HOSTILE
    assert {(message.tenant_id, message.via) for message in found} == {("default", "queue")}


@pytest.mark.parametrize("verb", [["queue", "write", "-"], ["import", "-"]])
def test_a_folder_on_which_nothing_has_run_is_named_and_written_to_all_the_same(
    run: Any, home: Path, verb: list[str]
) -> None:
    ran = run(*verb, stdin=b"one\n")

    assert ran.code == 0
    assert ran.err.startswith(f"nothing has run on {home / '.penstock'} yet")
    assert [message.json for message in on_spool(home)] == [b"one"]
    assert run(*verb, stdin=b"two\n").err == "", "it is said once: now the folder has a queue"


def test_queue_write_reads_stdin(run: Any, home: Path) -> None:
    ran = run("queue", "write", "-", "--json", "--tenant", "acme", stdin=b"one\ntwo")

    assert ran.json == {"written": 2, "bytes": 7}
    assert [(m.json, m.tenant_id) for m in on_spool(home)] == [(b"one", "acme"), (b"two", "acme")]


def test_queue_status_counts_what_waits(run: Any, home: Path) -> None:
    empty = run("queue", "status", "--json").json
    run("queue", "write", "-", stdin=b"one\ntwo\n")

    full = run("queue", "status", "--json").json

    assert (empty["messages"], empty["oldestSeconds"]) == (0, None)
    assert (full["messages"], full["mode"]) == (2, "spool")
    assert full["oldestSeconds"] >= 0
    assert run("queue", "status").out.split()[:4] == ["mode", "spool", "messages", "2"]


def test_a_house_without_a_queue_refuses_raw_lines(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APPHUB_EVENTS_MODE", "inline")

    ran = run("queue", "write", "-", stdin=b"x\n")

    assert ran.code == 1
    assert ran.err.startswith("error  settings_invalid: ")
    assert not (home / SPOOL).exists()


@pytest.mark.usefixtures("spool")
def test_import_queues_every_event_and_says_how_many(run: Any, home: Path) -> None:
    events = [json.dumps({"type": "a.b", "n": n, "pad": "x" * 300}).encode() for n in range(5_000)]
    (home / "events.jsonl").write_bytes(b"\n".join(events) + b"\n")

    ran = run("import", "events.jsonl", "--json")

    assert (ran.code, ran.err) == (0, "")
    assert ran.json["queued"] == 5_000
    assert [message.json for message in on_spool(home)] == events
    assert {message.via for message in on_spool(home)} == {"import"}


def test_import_goes_on_at_a_line(run: Any, home: Path) -> None:
    (home / "events.jsonl").write_bytes(b"1\n2\n3\n")

    run("import", "events.jsonl", "--from-line", "3")

    assert [message.json for message in on_spool(home)] == [b"3"]


@pytest.mark.usefixtures("spool")
def test_import_stops_at_a_line_that_is_too_long_and_says_where_to_go_on(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.cli.lines.batches.__kwdefaults__", _limits(100))
    (home / "events.jsonl").write_bytes(b"1\n2\n" + b"x" * 101 + b"\n3\n")

    ran = run("import", "events.jsonl")

    assert ran.code == 1
    assert [message.json for message in on_spool(home)] == [b"1", b"2"]
    assert ran.err.splitlines()[0] == "loaded up to line 2; go on with --from-line 3"
    assert ran.err.splitlines()[1].startswith("error  too_large: line 3")


def _limits(line_bytes_max: int) -> dict[str, int]:
    return {**(batches.__kwdefaults__ or {}), "line_bytes_max": line_bytes_max}


def test_import_waits_until_everything_accepted_so_far_is_settled(
    run: Any, desk: Any, answers: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.cli.commands.import_file._LOOK_EVERY_S", 0.0)
    (home / "events.jsonl").write_bytes(b"1\n2\n")

    def ledger(accepted: int, in_flight: int) -> dict[str, Any]:
        stored = accepted - in_flight
        return {"data": {"accepted": accepted, "inFlight": in_flight, "stored": stored}}

    away = (503, {"code": "store_unavailable", "detail": "not now", "remedy": "wait"})
    answers(
        "GET /admin/ledger",
        *(ledger(100, 0), ledger(102, 2), ledger(110, 9), away, ledger(120, 18)),
    )

    ran = run("import", "events.jsonl", "--wait", "--json")

    # Asked before; then settled went 100, 101, away, 102: what came later is not awaited.
    assert len(desk.asked) == 5
    assert (ran.json["queued"], ran.json["settled"]) == (2, True)


@pytest.mark.usefixtures("spool")
def test_import_never_says_settled_of_a_queue_that_the_server_does_not_read(
    run: Any, answers: Any, home: Path
) -> None:
    (home / "events.jsonl").write_bytes(b"1\n2\n")
    answers("GET /admin/ledger", {"data": {"accepted": 100, "inFlight": 0, "stored": 100}})

    ran = run("import", "events.jsonl", "--wait")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error  setup_incomplete: expected http://127.0.0.1:")
    assert "to count 102 accepted events, found 100: it does not read the queue in" in ran.err
    assert str(home / SPOOL) in ran.err
    assert "fix  Set PENSTOCK_DATA_DIR" in ran.err


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPHUB_EVENTS_MODE", "inline")
    monkeypatch.setattr("penstock.cli.posting._PAUSE", Backoff(base_s=0.0, max_s=0.0))


class Door:
    """Answers POST /v1/events as the real one does: a batch per item, a single one alone."""

    def __init__(self, desk: Any, *, busy_times: int = 0) -> None:
        self.seen: list[bytes] = []
        self.keys: list[str] = []
        self.busy_times = busy_times
        self._answer = desk.reply
        desk.script = self.answer

    def answer(self, asked: Any) -> Any:
        if self.busy_times > 0:
            self.busy_times -= 1
            return self._answer({"code": "queue_unavailable"}, 503, {"retry-after": "0"})
        self.keys.append(asked.headers["idempotency-key"])
        try:
            body = json.loads(asked.body)
        except ValueError:
            self.seen.append(asked.body)
            return self._answer({"code": "malformed_json", "detail": "no JSON"}, 400)
        if not isinstance(body, list):
            self.seen.append(asked.body)
            return self._answer({"data": {"status": "accepted", "event": body}}, 202)
        if any(item.get("poison") for item in body if isinstance(item, dict)):
            return self._answer({"code": "duplicate_key", "detail": "refused whole"}, 400)
        self.seen.extend(json.dumps(item).encode() for item in body)
        results = [
            {"index": n, "status": "rejected" if item == {} else item.get("s", "accepted")}
            for n, item in enumerate(body)
        ]
        return self._answer({"data": {"results": results}}, 207)


def test_without_a_queue_import_goes_over_http_and_counts_how_each_line_fared(
    run: Any, desk: Any, inline: None, home: Path
) -> None:
    door = Door(desk)
    lines = [b'{"n": 1}', b'{"s": "duplicate"}', b"{}", b"not json", b'{"a":1},{"b":2}']
    (home / "events.jsonl").write_bytes(b"\n".join(lines))

    ran = run("import", "events.jsonl", "--json")

    assert (ran.code, ran.err) == (0, "")
    counts = {name: ran.json[name] for name in ("accepted", "duplicates", "rejected")}
    assert counts == {"accepted": 1, "duplicates": 1, "rejected": 3}
    assert sorted(door.seen) == sorted(lines)


def test_a_batch_that_is_refused_whole_is_cut_until_the_bad_line_is_alone(
    run: Any, desk: Any, inline: None, home: Path
) -> None:
    door = Door(desk)
    lines = [b'{"n": %d}' % n for n in range(9)]
    lines[4] = b'{"poison": true}'
    (home / "events.jsonl").write_bytes(b"\n".join(lines))

    ran = run("import", "events.jsonl", "--json")

    assert ran.json["accepted"] == 9
    assert sorted(door.seen) == sorted(lines)
    assert len(set(door.keys)) == len(door.keys)


def test_the_same_file_imported_twice_uses_the_same_keys(
    run: Any, desk: Any, inline: None, home: Path
) -> None:
    door = Door(desk)
    (home / "events.jsonl").write_bytes(b'{"n": 1}\n{"n": 2}\n')

    run("import", "events.jsonl")
    run("import", "events.jsonl")

    first, second = door.keys
    assert first == second


def test_a_busy_server_is_asked_again(run: Any, desk: Any, inline: None, home: Path) -> None:
    door = Door(desk, busy_times=2)
    (home / "events.jsonl").write_bytes(b'{"n": 1}\n{"n": 2}\n')

    ran = run("import", "events.jsonl", "--json")

    assert ran.json["accepted"] == 2
    assert len(door.seen) == 2


def test_random_bytes_never_stop_the_queue_writer(run: Any, home: Path) -> None:
    rng = random.Random(3)
    content = bytes(rng.randrange(256) for _ in range(20_000))

    ran = run("queue", "write", "-", stdin=content)

    expected = [line for line in content.split(b"\n") if line.strip(b"\r \t")]
    assert ran.out == f"written  {len(expected)}\n"
    assert [message.json for message in on_spool(home)] == expected
