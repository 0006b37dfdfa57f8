"""Run the pipeline on Spark Structured Streaming: segments in, settled lots out.

    spool/seg-*.jsonl ── binaryFile stream ──▶ micro-batch ── mapInArrow ──▶ per partition:
        read ─▶ judge each line ─▶ settle whole segments in one transaction ─▶ what was done
    driver: delete settled segments, report progress, go on

Spark ends Python workers that nobody has used for a minute, and starting them anew takes seconds;
so between batches they are used now and then.

The checkpoint is disposable: progress lives in the ledger, in the transaction of the rows. Every
start, and every fault of a query, begins with an empty checkpoint and finds in the folder exactly
what is not settled yet. A segment read twice is settled once.
"""

from __future__ import annotations

import gc
import math
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import structlog
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.base.errors import StoreUnavailable
from penstock.base.ids import uuid7
from penstock.ingress.lot import Lot, Receipt, SegmentMark
from penstock.ingress.progress import Plan, Progress
from penstock.ingress.segments import lots

_log = structlog.get_logger("ingress")
_CENTURIES = "36500d"  # one future mtime would otherwise hide every later file for ever
_FILES_PER_BATCH = 160
_USE_EVERY_S = 20.0  # the executors' Python, while nothing comes
_FILES_PER_CHECKPOINT = 20_000  # Spark remembers every file it saw; a new checkpoint forgets them
_RESULT = "segment string, messages long, stored long, duplicates long, dead long"


class _Worker:
    """What one executor process keeps between micro-batches."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.intake = plan.open_intake()
        self.protect = plan.open_protect()
        self.registry = plan.load_registry()

    @classmethod
    def of(cls, plan: Plan) -> _Worker:
        """This process's worker, made anew when the plan needs another registry or store."""
        global _worker
        if _worker is None or _worker.plan.opens != plan.opens:
            _worker = cls(plan)
        elif _worker.registry.revision < plan.revision:
            _worker.registry = plan.load_registry()
        _worker.plan = plan
        return _worker


_worker: _Worker | None = None


def settle_partition(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Judge and settle every segment of one partition; runs on the executor."""
    worker = _Worker.of(plan)
    # Verdicts hold no cycles, and thousands of them make the collector look for some all the time.
    gc.disable()
    for marks in lots(_contents(batches), lambda: worker.registry, worker.protect):
        receipt = worker.intake.settle(Lot(segments=marks, epoch=plan.epoch))
        yield _result(marks, receipt)


def warm_partition(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make this executor's worker, and nothing else."""
    _Worker.of(plan).intake.settle(Lot())
    yield from batches


def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Use an executor's Python, and nothing else."""
    yield from batches


def _contents(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each segment; one that is gone was settled by an earlier try."""
    for batch in batches:
        for address in batch.column("path").to_pylist():
            path = Path(unquote(urlsplit(address).path))
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue
            yield path.name, content


def _result(marks: list[SegmentMark], receipt: Receipt) -> pa.RecordBatch:
    rows = [
        (
            mark.segment,
            len(mark.messages),
            *((receipt.stored, receipt.duplicates, receipt.dead) if not n else (0, 0, 0)),
        )
        for n, mark in enumerate(marks)
    ]
    names = ("segment", "messages", "stored", "duplicates", "dead")
    types = (pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.int64())
    columns = [pa.array(list(c), t) for c, t in zip(zip(*rows, strict=True), types, strict=True)]
    return pa.record_batch(columns, names=list(names))


class SparkIngress:
    """The ingress of one spool on one session, until told to stop."""

    def __init__(
        self,
        session: SparkSession,
        *,
        spool_dir: Path,
        checkpoint_dir: Path,
        plan: Callable[[], Plan],
        settled: Callable[[list[str]], set[str]],
        report: Callable[[Progress], None],
    ) -> None:
        self._session = session
        self._spool_dir = spool_dir
        self.checkpoint_dir = checkpoint_dir
        self._plan = plan
        self._settled = settled
        self._report = report
        self._files_seen = 0
        self._used_at = time.monotonic()  # of Python; infinite while a batch uses it
        self.progress = Progress()

    def warm_up(self, partitions: int) -> None:
        """Start the executors' Python, its connections and its registry before the first event."""
        plan = self._plan()
        frame = self._session.range(0, partitions, 1, partitions)
        frame.mapInArrow(lambda batches: warm_partition(plan, batches), "id long").collect()

    def run(self, stop: threading.Event) -> None:
        """Run queries one after another until `stop`; raise what a fresh checkpoint cannot heal."""
        while not stop.is_set():
            try:
                self._sweep()
            except StoreUnavailable as error:
                _log.warning("waiting_for_store", detail=error.detail)
                stop.wait(1.0)
                continue
            query = self._start()
            try:
                self._watch(query, stop)
            finally:
                query.stop()

    def _start(self) -> StreamingQuery:
        shutil.rmtree(self.checkpoint_dir, ignore_errors=True)
        self._files_seen = 0
        stream = (
            self._session.readStream.format("binaryFile")
            .schema("path string, modificationTime timestamp, length long, content binary")
            .option("pathGlobFilter", "seg-*.jsonl")
            .option("maxFileAge", _CENTURIES)
            .option("maxFilesPerTrigger", _FILES_PER_BATCH)
            .load(str(self._spool_dir))
            .select("path")  # executors read the bytes themselves: they never pass the JVM
        )
        return (
            stream.writeStream.queryName(f"ingress-{uuid7()}")
            .option("checkpointLocation", str(self.checkpoint_dir / uuid7()))
            .foreachBatch(self._batch)
            .start()
        )

    def _watch(self, query: StreamingQuery, stop: threading.Event) -> None:
        """Wait until the query ends, or should."""
        while query.isActive and not stop.is_set():
            if self._files_seen > _FILES_PER_CHECKPOINT:
                return
            stop.wait(0.2)
            self._report(self.progress)
            self._stay_awake()
        fault = query.exception()
        if fault is not None and not stop.is_set():
            self.progress.checkpoint_resets += 1
            _log.warning("query_restarts", detail=str(fault)[:2000])
            # Waiting here keeps a broken store from being asked in a tight loop.
            stop.wait(min(5.0, 0.2 * 2 ** min(self.progress.checkpoint_resets, 5)))

    def _stay_awake(self) -> None:
        """Use Python when nobody has for a while."""
        if time.monotonic() - self._used_at > _USE_EVERY_S:
            self._used_at = time.monotonic()
            self._session.range(1).mapInArrow(pass_on, "id long").collect()

    def _batch(self, frame: DataFrame, _batch_id: int) -> None:
        started = time.perf_counter()
        plan = self._plan()
        self._used_at = math.inf
        try:
            mapped = frame.mapInArrow(lambda batches: settle_partition(plan, batches), _RESULT)
            done = mapped.collect()
        finally:
            self._used_at = time.monotonic()
        self._forget([row.segment for row in done])
        self._count(done, (time.perf_counter() - started) * 1000)

    def _count(self, done: list[Row], took_ms: float) -> None:
        progress = self.progress
        progress.batch_took(took_ms)
        progress.last_batch_messages = 0
        for row in done:
            progress.last_batch_messages += row.messages
            progress.stored += row.stored
            progress.duplicates += row.duplicates
            progress.dead += row.dead
        progress.messages += progress.last_batch_messages
        self._files_seen += len(done)
        if progress.last_batch_messages:
            _log.info(
                "batch_settled",
                segments=len(done),
                messages=progress.last_batch_messages,
                milliseconds=round(took_ms, 1),
            )
        self._report(progress)

    def _sweep(self) -> None:
        """Delete segments that were settled but not deleted before a crash."""
        names = [path.name for path in self._spool_dir.glob("seg-*.jsonl")]
        if names:
            self._forget(sorted(self._settled(names)))

    def _forget(self, segments: list[str]) -> None:
        for segment in segments:
            (self._spool_dir / segment).unlink(missing_ok=True)
