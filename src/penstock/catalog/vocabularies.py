"""List every vocabulary that comes with the product."""

from __future__ import annotations

from penstock.catalog.platform.vocabulary import PLATFORM
from penstock.registry.declare import Vocabulary

ALL: tuple[Vocabulary, ...] = (PLATFORM,)
