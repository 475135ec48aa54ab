"""Hugging Face transformers: a cache of whole tensors, one batch at a time, no pool."""
