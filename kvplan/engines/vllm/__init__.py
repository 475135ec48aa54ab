"""vLLM, from settings to blocks."""
