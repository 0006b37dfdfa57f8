"""Answer each subject's requests, one file per subject."""
