"""Which hardware and which configuration hold what is asked: a search over `size`."""
