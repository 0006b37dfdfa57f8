"""Append events on a condition: nothing that a decision did not see may have happened since."""
