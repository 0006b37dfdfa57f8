"""Judge whole segments: the lines of a spool file become one mark with its verdicts.

A segment is the unit of everything that follows: judged whole, settled whole in one transaction,
recorded in the ledger by its name, deleted only after that. Reading it again gives the same ids and
the same verdicts, because nothing here looks at a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache

from penstock.base.errors import Fault
from penstock.ingress.lot import Judged, SegmentMark
from penstock.ingress.pipeline import judge
from penstock.ingress.protect import NOTHING_PERSONAL, Protect
from penstock.ingress.verdict import Arrival, Reason, Rejected, Via
from penstock.registry.registry import Registry
from penstock.transport.port import UNBOUND, Message
from penstock.transport.segment import Corrupt, SegmentName, parse

LOT_MESSAGES_MAX = 2_000
_VIAS = {via.value: via for via in Via}


def judge_segment(
    name: SegmentName, content: bytes, registry: Registry, protect: Protect = NOTHING_PERSONAL
) -> SegmentMark:
    """Every line of one segment with its verdict, as it may be stored."""
    segment = name.text
    judged = [
        _judge_line(segment, number, line, registry) for number, line in enumerate(parse(content))
    ]
    hidden = protect.hide(judged, registry)
    return SegmentMark(segment, name.writer, name.start + name.lines, hidden)


def _judge_line(segment: str, number: int, line: Message | Corrupt, registry: Registry) -> Judged:
    if isinstance(line, Corrupt):
        rejected = Rejected(
            raw=line.raw,
            reason=Reason.CORRUPT_FRAME,
            detail=line.detail,
            faults=(Fault("", line.detail),),
            remedy="The bytes on disk changed after they were written: check the disk.",
        )
        return Judged(line.raw, rejected)
    arrival = Arrival(
        _instant(line.accepted_ms),
        "",
        _VIAS.get(line.via, Via.QUEUE),
        None if line.tenant_id == UNBOUND else line.tenant_id,
        (segment, str(number)),
    )
    return Judged(line.json, judge(line.json, arrival, registry))


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
        if group and count + len(mark.judged) > LOT_MESSAGES_MAX:
            yield group
            group, count = [], 0
        group.append(mark)
        count += len(mark.judged)
    if group:
        yield group
