"""Ollama: what it fills in, and the llama-server that it starts."""
