"""A Plan as text, JSON, CSV or Markdown; one file a format."""
