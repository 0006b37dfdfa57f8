"""Let old events leave the hot table once the archive has them, and not before."""
