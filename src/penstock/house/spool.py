"""Open the spool of the settings."""

from __future__ import annotations

from penstock.base.settings import Settings
from penstock.transport.on_disk import Spool


def open_spool(settings: Settings) -> Spool:
    """The spool of these settings, for writing."""
    return Spool(
        settings.spool_dir,
        segment_bytes=settings.segment_bytes,
        segment_age_ms=settings.segment_age_ms,
        bytes_max=settings.spool_bytes_max,
    )
