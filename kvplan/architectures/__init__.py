"""From `config.json` to a `ModelSpec`: one file a family, class defaults with their source."""
