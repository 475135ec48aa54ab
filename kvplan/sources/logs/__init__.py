"""Start-up logs of engines → measurement records; one file an engine holds its wordings."""
