"""Seal the log so that any later change of it shows, and prove it to whoever asks."""
