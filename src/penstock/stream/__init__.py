"""Send the log to whoever watches it live, resumable from any position, at each one's own pace."""
