"""Take judged messages in: rows, dead letters and the ledger in one transaction."""
