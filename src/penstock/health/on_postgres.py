"""Write what running parts say about themselves, and gather the facts that health is told from.

ReportBook.write(part, report)    a part speaks, every second or two
HealthReader.facts(…)             everything, for the pages of operators
HealthReader.readiness(…)         a quick look, for load balancers; kept for half a second
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime

from psycopg.rows import class_row

from penstock.base.errors import PenstockError
from penstock.base.on_postgres import Pool, answering
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonValue
from penstock.health.snapshot import INGRESS, Depth, Facts, Mode, PartReport, Readiness, readiness
from penstock.sql import query
from penstock.store.ledger.account import LedgerReport

_LOOK_WAIT_S = 1.0
_LOOK_KEPT_S = 0.5


class ReportBook:
    """Where running parts leave word. `pool` plays owner or penstock_ingest."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def write(self, part: str, report: Mapping[str, JsonValue]) -> None:
        """Replace what the part said before; StoreUnavailable when PostgreSQL does not answer."""
        values = {"part": part, "report": encode(dict(report)).decode()}
        with answering(), self._pool.connection() as connection:
            connection.execute(query("health", "report"), values)


class HealthReader:
    """The state of one house. `pool` sees every tenant: owner or penstock_ingest.

    `depth` counts what lies on the queue and `writable` tries its disk; None where there is none.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        depth: Callable[[], Depth] | None = None,
        writable: Callable[[], bool] | None = None,
    ) -> None:
        self._pool = pool
        self._depth = depth
        self._writable = writable
        self._looking = threading.Lock()
        self._looked: tuple[float, Readiness] | None = None

    def facts(self, ledger: LedgerReport, *, mode: Mode, at: datetime) -> Facts:
        """Everything beside the ledger; StoreUnavailable when PostgreSQL does not answer."""
        with answering(), self._pool.connection() as connection:
            letters = connection.execute(query("health", "dead_letters")).fetchall()
        return Facts(
            at=at,
            mode=mode,
            ledger=ledger,
            parts=self.parts(),
            dead_letters=dict(letters),
            depth=None if self._depth is None else self._depth(),
        )

    def parts(self, wait_s: float | None = None) -> dict[str, PartReport]:
        """What each running part last said, by its name."""
        with answering(), self._pool.connection(timeout=wait_s) as connection:
            cursor = connection.cursor(row_factory=class_row(PartReport))
            rows = cursor.execute(query("health", "parts")).fetchall()
        return {row.part: row for row in rows}

    def readiness(self, mode: Mode) -> Readiness:
        """Whether requests can be served now.

        Anybody may ask, so an answer is kept a moment, and while one looks the others hear what was
        seen before: a flood of questions holds no threads.
        """
        looked = self._looked
        if looked is not None and time.monotonic() - looked[0] <= _LOOK_KEPT_S:
            return looked[1]
        if not self._looking.acquire(blocking=looked is None) and looked is not None:
            return looked[1]
        try:
            found = self._look(mode)
            self._looked = (time.monotonic(), found)
        finally:
            self._looking.release()
        return found

    def _look(self, mode: Mode) -> Readiness:
        spool = self._writable is None or self._writable()
        try:
            ingress = self.parts(_LOOK_WAIT_S).get(INGRESS)
        except PenstockError:
            return readiness(mode, store=False, spool=spool, ingress_age_s=None)
        age_s = None if ingress is None else ingress.age_s
        return readiness(mode, store=True, spool=spool, ingress_age_s=age_s)
