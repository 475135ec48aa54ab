"""The only code that reads the outside world: Hub, files, drivers, bundled specs."""
