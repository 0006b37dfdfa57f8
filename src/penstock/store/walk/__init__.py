"""Find the index that reaches the wanted events soonest."""
