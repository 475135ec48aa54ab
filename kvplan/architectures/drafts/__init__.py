"""Drafts for speculative decoding: what each holds beside the model that it serves."""
