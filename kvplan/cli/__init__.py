"""One file a command; no arithmetic."""
