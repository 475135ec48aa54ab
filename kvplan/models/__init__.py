"""What a model stores: its caches, its weights, and the number formats of both."""
