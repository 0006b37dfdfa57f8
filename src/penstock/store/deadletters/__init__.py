"""Keep what was rejected, show it by cause, and let it in again when it fits."""
