"""How many tokens of context an image takes: one class a way of cutting images up."""
