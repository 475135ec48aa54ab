"""Pure functions over specs: size, advise. No I/O."""
