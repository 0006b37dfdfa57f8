"""Read what triggers and workflows do: one look, for pages, metrics and alerts alike."""
