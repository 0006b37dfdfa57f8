"""The Python of the guide about decisions runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

from tests.store.append.support import in_memory

from penstock.store.append.condition import criteria_of
from penstock.store.query import EventQuery, Query

GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "decide.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


def test_the_guide_books_a_seat_once() -> None:
    first, remote, query = BLOCKS
    with in_memory() as appends:
        names = {"house": SimpleNamespace(appends=appends)}
        exec(compile(first, "decide.md", "exec"), names)  # noqa: S102
        exec(compile(first, "decide.md", "exec"), names)  # noqa: S102
        compile(remote, "decide.md", "exec")
        exec(compile(query, "decide.md", "exec"), names)  # noqa: S102
        found = appends.of("default").read(criteria_of(Query().type("seat.booked")))

    assert [e.envelope.payload for e in found.events] == [{"seat": "A1"}]
    built = names["busy"]
    assert isinstance(built, Query)
    assert isinstance(built.of("default"), EventQuery)
