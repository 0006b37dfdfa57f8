"""Account for every message: accepted = stored + duplicates + dead-lettered + in flight."""
