"""Say who a caller is and what they may do: tokens, scopes, one-time tickets."""
