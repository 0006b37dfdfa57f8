"""Hold what every room stands on: errors, time, ids, settings, backoff, logs, the two engines."""
