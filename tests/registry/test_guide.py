"""The Python of the guide about changing types runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "registry.md"


def test_the_code_of_the_guide_runs_from_top_to_bottom() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)

    assert len(blocks) == 2
    exec(compile("\n".join(blocks), GUIDE.name, "exec"), {"__name__": "guide"})  # noqa: S102  our own
