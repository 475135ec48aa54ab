"""TensorRT-LLM: a fraction of what is left after weights and a measured peak, in blocks."""
