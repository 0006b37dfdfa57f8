"""What the ingress says of itself only grows, and counts every batch once by its duration."""

from __future__ import annotations

from penstock.ingress.progress import BATCH_BOUNDS_S, Progress


def counted(*milliseconds: float) -> dict[float, int]:
    """How many batches are counted at each bound; infinity is beyond the last."""
    progress = Progress()
    for each in milliseconds:
        progress.batch_took(each)
    bounds = (*BATCH_BOUNDS_S, float("inf"))
    return {b: n for b, n in zip(bounds, progress.took, strict=True) if n}


def test_a_batch_counts_at_the_first_bound_that_it_does_not_pass() -> None:
    assert counted(4, 10, 10.1, 250, 59_999) == {0.01: 2, 0.025: 1, 0.25: 1, 60.0: 1}


def test_a_batch_beyond_every_bound_is_counted_too() -> None:
    assert counted(60_000, 3_600_000) == {60.0: 1, float("inf"): 1}


def test_the_report_has_the_durations_in_seconds() -> None:
    progress = Progress()
    progress.batch_took(20)
    progress.batch_took(400)

    report = progress.as_json()

    assert (report["batches"], report["lastBatchMs"]) == (2, 400)
    assert report["batchSeconds"] == {
        "bounds": list(BATCH_BOUNDS_S),
        "counts": [0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
        "sum": 0.42,
    }


def test_a_report_stays_as_it_was_when_more_is_done() -> None:
    progress = Progress()
    before = progress.as_json()

    progress.batch_took(20)

    assert before == Progress().as_json()
