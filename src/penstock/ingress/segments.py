"""Judge whole segments: the lines of a spool file become one mark with its verdicts.

A segment is the unit of everything that follows: judged whole, settled whole in one transaction,
recorded in the ledger by its name, deleted only after that. Reading it again gives the same ids and
the same verdicts, because nothing here looks at a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice

from penstock.base.errors import Fault
from penstock.ingress.lot import Judged, SegmentMark, Written
from penstock.ingress.protect import NOTHING_PERSONAL, Protect
from penstock.ingress.rows import write
from penstock.ingress.several import judge_several
from penstock.ingress.verdict import Arrival, Reason, Rejected, Via
from penstock.registry.registry import Registry
from penstock.transport.port import UNBOUND, Message
from penstock.transport.segment import Corrupt, SegmentName, parse

LOT_MESSAGES_MAX = 2_000
_FEW = 64
_VIAS = {via.value: via for via in Via}


def judge_segment(
    name: SegmentName, content: bytes, registry: Registry, protect: Protect = NOTHING_PERSONAL
) -> SegmentMark:
    """Every line of one segment as it may be stored.

    A few at a time: what a message was read into is still near when its row is written.
    """
    segment = name.text
    written: list[Written] = []
    lines = parse(content)
    while few := list(islice(lines, _FEW)):
        judged = _judge(segment, len(written), few, registry)
        written += write(protect.hide(judged, registry))
    return SegmentMark(segment, name.writer, name.start + name.lines, written)


def _judge(
    segment: str, first: int, lines: Sequence[Message | Corrupt], registry: Registry
) -> list[Judged]:
    """Every line with its verdict; `first` is the number of the first one."""
    messages = [line for line in lines if isinstance(line, Message)]
    if len(messages) < len(lines):
        return [
            _corrupt(line)
            if isinstance(line, Corrupt)
            else _judge(segment, first + n, [line], registry)[0]
            for n, line in enumerate(lines)
        ]
    raws = [message.json for message in messages]
    arrivals = [_arrival(message, segment, first + n) for n, message in enumerate(messages)]
    return list(map(Judged, raws, judge_several(raws, arrivals, registry)))


def _arrival(message: Message, segment: str, number: int) -> Arrival:
    _, accepted_ms, tenant_id, via = message
    return Arrival(
        _instant(accepted_ms),
        "",
        _VIAS.get(via, Via.QUEUE),
        None if tenant_id == UNBOUND else tenant_id,
        (segment, str(number)),
    )


def _corrupt(line: Corrupt) -> Judged:
    rejected = Rejected(
        raw=line.raw,
        reason=Reason.CORRUPT_FRAME,
        detail=line.detail,
        faults=(Fault("", line.detail),),
        remedy="The bytes on disk changed after they were written: check the disk.",
    )
    return Judged(line.raw, rejected)


@lru_cache(64)
def _instant(ms: int) -> datetime:
    """Lines of a segment share their instants."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def lots(
    segments: Iterable[tuple[str, bytes]],
    registry: Callable[[], Registry],
    protect: Protect = NOTHING_PERSONAL,
) -> Iterator[list[SegmentMark]]:
    """Group segments so that a lot holds about LOT_MESSAGES_MAX messages, whole segments only."""
    group: list[SegmentMark] = []
    count = 0
    for text, content in segments:
        name = SegmentName.parse(text)
        if name is None:
            continue
        mark = judge_segment(name, content, registry(), protect)
        if group and count + len(mark.messages) > LOT_MESSAGES_MAX:
            yield group
            group, count = [], 0
        group.append(mark)
        count += len(mark.messages)
    if group:
        yield group
