"""How each engine spends memory. One engine knows nothing of another."""
