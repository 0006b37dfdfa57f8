"""Go back in time: the state of anything at any moment, what changed it, and a replay of it all."""
