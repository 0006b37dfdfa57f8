"""The short form of the kill campaign: server, JVM and PostgreSQL die once each under load."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from tests.prove.kill import campaign


@pytest.mark.prove
def test_every_acked_event_is_stored_exactly_once_though_parts_are_killed() -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-prove-") as folder:
        report = campaign(Path(folder), rounds=3, seed=11)

    assert report["lost"] == report["twice"] == 0
    assert report["stored"] == report["ledger"]["stored"]  # type: ignore[index]
    assert int(str(report["acked"])) > 500
