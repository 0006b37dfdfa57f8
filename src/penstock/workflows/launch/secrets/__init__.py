"""Keep the secrets that steps name: signatures, tokens, passwords."""
