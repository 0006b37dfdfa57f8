"""List every vocabulary that comes with the product."""

from __future__ import annotations

from penstock.catalog.development.vocabulary import DEVELOPMENT
from penstock.catalog.governance.vocabulary import GOVERNANCE
from penstock.catalog.platform.vocabulary import PLATFORM
from penstock.registry.declare import Vocabulary

ALL: tuple[Vocabulary, ...] = (PLATFORM, DEVELOPMENT, GOVERNANCE)
