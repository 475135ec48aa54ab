"""llama.cpp: what one process of llama-server allocates, device by device."""
