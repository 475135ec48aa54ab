"""Real traffic against an engine's pools: how many requests fit at a chosen risk."""
