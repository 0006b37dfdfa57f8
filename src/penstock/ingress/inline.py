"""Run the pipeline in this process: a message is acknowledged when its row is committed.

    send ──▶ waiting ──▶ [judge ─▶ hide ─▶ write ─▶ settle] one lot for all that waited ──▶ done

The same `judge` as on Spark, the same `Intake`; only the queue in between is missing. Messages that
arrive while a commit runs share the next one.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime

import structlog

from penstock.base.errors import PenstockError, QueueUnavailable
from penstock.base.ids import uuid7
from penstock.ingress.lot import Intake, Judged, Lot
from penstock.ingress.pipeline import judge
from penstock.ingress.protect import NOTHING_PERSONAL, Protect
from penstock.ingress.rows import write
from penstock.ingress.verdict import Arrival, Via
from penstock.registry.registry import Registry
from penstock.transport.port import UNBOUND, Message

_LOT_MESSAGES_MAX = 2_000
_log = structlog.get_logger("ingress.inline")
_Waiting = tuple[Sequence[Message], "Future[None]"]


class InlineHost:
    """A transport whose queue is a function call."""

    def __init__(
        self,
        intake: Intake,
        registry: Callable[[], Registry],
        protect: Protect = NOTHING_PERSONAL,
    ) -> None:
        self._intake = intake
        self._registry = registry
        self._protect = protect
        self._writer = f"inline-{uuid7()}"
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="inline-ingress", daemon=True)
        self._thread.start()

    def send(self, messages: Sequence[Message]) -> Future[None]:
        """A future that resolves when the messages are settled."""
        done: Future[None] = Future()
        self._waiting.put((messages, done))
        return done

    def close(self) -> None:
        """Settle what waits, then stop."""
        self._waiting.put(None)
        self._thread.join()
        self._intake.close()

    def _run(self) -> None:
        while (first := self._waiting.get()) is not None:
            group = [first]
            ended = self._gather(group)
            self._settle(group)
            if ended:
                return

    def _gather(self, group: list[_Waiting]) -> bool:
        count = len(group[0][0])
        while count < _LOT_MESSAGES_MAX:
            try:
                more = self._waiting.get_nowait()
            except queue.Empty:
                return False
            if more is None:
                return True
            group.append(more)
            count += len(more[0])
        return False

    def _settle(self, group: list[_Waiting]) -> None:
        registry = self._registry()
        judged = [
            Judged(message.json, judge(message.json, _arrival(message), registry))
            for messages, _ in group
            for message in messages
        ]
        try:
            written = write(self._protect.hide(judged, registry))
            self._intake.settle(Lot(writer=self._writer, messages=written))
        except PenstockError as error:
            _log.warning("settle_failed", code=error.code, detail=error.detail)
            failure = QueueUnavailable(f"the event could not be committed: {error.detail}")
            for _, done in group:
                done.set_exception(failure)
        else:
            for _, done in group:
                done.set_result(None)


def _arrival(message: Message) -> Arrival:
    return Arrival(
        accepted_at=datetime.fromtimestamp(message.accepted_ms / 1000, UTC),
        fallback_id=uuid7(),
        via=Via(message.via),
        tenant_id=None if message.tenant_id == UNBOUND else message.tenant_id,
    )
