"""Keep the services that steps may call."""
