"""Hold what waits and what runs: claimed by workers, fenced, reaped when a worker dies."""
