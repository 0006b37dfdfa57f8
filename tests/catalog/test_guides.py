"""The Python of the guides about vocabularies and enrichment runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


@pytest.mark.parametrize("guide", ["vocabularies.md", "enrichment.md"])
def test_the_code_of_the_guide_runs_from_top_to_bottom(guide: str) -> None:
    text = (GUIDES / guide).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)

    assert len(blocks) >= 2
    exec(compile("\n".join(blocks), guide, "exec"), {"__name__": "guide"})  # noqa: S102  our own
