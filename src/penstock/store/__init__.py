"""Keep every event once, in one gapless order, and give it back."""
