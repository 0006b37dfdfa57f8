"""Call prepared statements over one connection, one at a time or ahead of their answers.

    call ──▶ watched until it is answered ──▶ the row        nothing else is under way
    send, send ──▶ ask, ask ──▶ row, row      the server goes from one to the next without a pause

Statements that were sent ahead run in the order they were sent, each a transaction of its own that
sees what those before it committed. Answers may be asked for in any order; what comes in before
its turn is kept. A line that breaks is closed: whoever asks then is told so, and opens another.

To be woken takes a thread 40 us, a sixth of what a lone append takes in all. So the answer to a
call is looked for again and again, for half a millisecond at most: only for a caller who came back
that soon after its last answer, while answers come that soon, and where there is a processor for
the server too. Whoever else wants to run goes first, here and among Python's threads.
"""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import psycopg
from psycopg import pq
from psycopg.errors import LockNotAvailable, QueryCanceled, error_from_result
from psycopg.rows import TupleRow

Connection: TypeAlias = psycopg.Connection[TupleRow]
Row: TypeAlias = list[bytes | None]
Ask: TypeAlias = Callable[[], Row | None]  # the one row that a statement gives or writes, if any
Parameters: TypeAlias = Sequence[bytes]
_BROKE = "the connection broke"
_ROWS, _DONE = int(pq.ExecStatus.TUPLES_OK), int(pq.ExecStatus.COMMAND_OK)
_WATCH_S = 0.0005
_HAS_COMPANY = len(os.sched_getaffinity(0)) > 1
_HARMLESS = (QueryCanceled, LockNotAvailable)  # of the operational errors


class _Sent:
    """A statement that is under way, or its result."""

    __slots__ = ("result",)

    def __init__(self) -> None:
        self.result: pq.abc.PGresult | None = None


class Line:
    """A connection whose statements are prepared already. One thread at a time."""

    def __init__(self, connection: Connection) -> None:
        self.is_closed = False
        self._connection = connection
        self._pgconn = connection.pgconn
        self._pgconn.nonblocking = 1
        self._sent: deque[_Sent] = deque()
        self._is_piped = False
        self._watch_until = 0.0  # a call that is made before is worth watching
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self._pgconn.socket, select.POLLIN)
        self._writable.register(self._pgconn.socket, select.POLLOUT)

    def close(self) -> None:
        self.is_closed = True
        self._connection.close()

    def call(self, name: bytes, parameters: Parameters, forms: Sequence[int]) -> Row | None:
        """Run the statement and wait for it, behind whatever is under way."""
        if self._sent:
            return self.send(name, parameters, forms)()
        pgconn, sleep, now = self._pgconn, self._readable.poll, time.perf_counter
        result: pq.abc.PGresult | None = None
        try:
            if self._is_piped:
                pgconn.exit_pipeline_mode()
                self._is_piped = False
            pgconn.send_query_prepared(name, parameters, forms)
            if pgconn.flush():
                self._flush()
            began = now()
            late = began + _WATCH_S
            is_watched = began < self._watch_until and _HAS_COMPANY
            while pgconn.is_busy():
                if not is_watched:
                    sleep()
                pgconn.consume_input()
                if is_watched and pgconn.is_busy():
                    os.sched_yield()  # the server may be meant to run on this very processor
                    is_watched = now() < late
            ended = now()
            self._watch_until = ended + _WATCH_S if ended < late else 0.0
            found = pgconn.get_result()
            while found is not None:  # up to the last: a commit may fail after its rows
                result, found = found, pgconn.get_result()
        finally:
            if result is None:  # whatever comes in now is not for the next one
                self.close()
        if result is None:
            raise psycopg.OperationalError(_BROKE)
        return self._row(result)

    def later(self, name: bytes, parameters: Parameters, forms: Sequence[int]) -> Ask:
        """The call, to be made when it is asked for."""
        return partial(self.call, name, parameters, forms)

    def send(
        self, name: bytes, parameters: Parameters, forms: Sequence[int], *, behind: bytes = b""
    ) -> Ask:
        """Have the statement run as soon as those before it have, and go on.

        When it is to run behind another one, which takes no parameters, both are one transaction.
        """
        sent = _Sent()
        try:
            if not self._is_piped:
                self._pgconn.enter_pipeline_mode()
                self._is_piped = True
            if behind:
                self._pgconn.send_query_prepared(behind, ())
            self._pgconn.send_query_prepared(name, parameters, forms)
            self._pgconn.pipeline_sync()
            self._flush()
        except psycopg.OperationalError:
            self.close()
            raise
        self._sent.append(sent)
        return partial(self._ask, sent)

    def _flush(self) -> None:
        while self._pgconn.flush():
            # The answers are one row each: the server never waits for us to read them.
            self._writable.poll()

    def _ask(self, sent: _Sent) -> Row | None:
        try:
            while sent.result is None:
                if self.is_closed:
                    raise psycopg.OperationalError(_BROKE)
                self._sent[0].result = self._receive()
                self._sent.popleft()
        except psycopg.OperationalError:
            self.close()
            raise
        return self._row(sent.result)

    def _receive(self) -> pq.abc.PGresult:
        """The result of the oldest statement that is under way."""
        found: pq.abc.PGresult | None = None
        while True:
            while self._pgconn.is_busy():
                self._readable.poll()
                self._pgconn.consume_input()
            result = self._pgconn.get_result()
            if result is None:  # the end of one statement, or of the connection
                if self._pgconn.status != pq.ConnStatus.OK:
                    raise psycopg.OperationalError(_BROKE)
            elif result.status == pq.ExecStatus.PIPELINE_SYNC:
                if found is not None:
                    return found
            elif result.status != pq.ExecStatus.PIPELINE_ABORTED:  # else one before it says why
                found = result

    def _row(self, result: pq.abc.PGresult) -> Row | None:
        status = result.status
        if status == _DONE:
            return [] if result.command_tuples else None
        if status != _ROWS:
            if self._connection.closed:
                self.close()
                raise psycopg.OperationalError(_BROKE)
            error = error_from_result(result)
            if isinstance(error, psycopg.OperationalError) and not isinstance(error, _HARMLESS):
                self.close()
            raise error
        if not result.ntuples:
            return None
        return [result.get_value(0, column) for column in range(result.nfields)]
