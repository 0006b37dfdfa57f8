"""Check a whole log: every row, every seal, every checkpoint, and where the first damage is."""
