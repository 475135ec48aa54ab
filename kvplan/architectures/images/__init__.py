"""Tokens of an image by family: which rule its processor follows, and with which settings."""
