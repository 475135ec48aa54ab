"""Fitting vLLM's runtime memory on measured starts; `validation/fit_runtime.py` runs it."""
