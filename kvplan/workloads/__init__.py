"""What is asked of a deployment: lengths, prefixes, arrivals. Knows no engine."""
