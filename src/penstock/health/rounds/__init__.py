"""Look after health on a timer: keep totals, and raise alerts that are due."""
