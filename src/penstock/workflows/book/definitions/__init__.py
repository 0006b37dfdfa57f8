"""Keep definitions of workflows, every version for ever."""
