"""Hold one exchange with a server: what to say next, and what was heard so far.

    while (body := talk.body) is not None:
        talk.hear(post(body))

Pure bookkeeping, so that the blocking and the awaiting HTTP client say the same things. When the
server goes away after some batches, the talk ends with their results: they are known to be stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from penstock.base.errors import PenstockError, QueueUnavailable
from penstock.envelope.envelope import JsonObject
from penstock.publish.answer import Answer, read_answer
from penstock.publish.batch import Batch, batches
from penstock.publish.port import Result


class Conversation:
    """One call of `send`: batches to say, results heard."""

    def __init__(self, events: Sequence[JsonObject]) -> None:
        self._batches: deque[Batch] = deque(batches(events))
        self.results: list[Result] = []

    @property
    def body(self) -> bytes | None:
        """What to send next; None when the talk is over."""
        return self._batches[0].body if self._batches else None

    def hear(self, answer: Answer | QueueUnavailable) -> None:
        """Take in the answer to `body`; raises when nothing at all was achieved."""
        batch = self._batches.popleft()
        if isinstance(answer, Answer) and answer.too_large and len(batch.events) > 1:
            self._batches.extendleft(reversed(batch.halves()))
            return
        try:
            if isinstance(answer, QueueUnavailable):
                raise answer
            self.results += read_answer(answer, batch.events)
        except PenstockError:
            if not self.results:
                raise
            self._batches.clear()
