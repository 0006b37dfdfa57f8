"""Keep personal data readable only while its subject's key is there."""
