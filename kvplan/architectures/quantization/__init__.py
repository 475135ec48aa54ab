"""One file a quantization scheme: what is packed, what is left out, the KV scheme."""
