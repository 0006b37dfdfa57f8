"""Let generated tests take the time that a busy machine needs."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")
