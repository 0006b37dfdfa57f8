"""The Python of the guide about handlers runs as it stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "handlers.md"


def test_the_code_of_the_guide_runs_from_top_to_bottom(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    module = ModuleType("guide_handlers")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    assert len(blocks) == 4
    exec(compile("\n".join(blocks), GUIDE.name, "exec"), vars(module))  # noqa: S102  our own
