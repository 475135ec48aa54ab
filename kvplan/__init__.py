"""kvplan: how many requests fit in memory, what runs out first, and what to change."""

from kvplan._version import __version__

__all__ = ["__version__"]
