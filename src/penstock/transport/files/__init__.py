"""Stand between the spool and a disk, so that a disk that fails can take the real one's place."""
