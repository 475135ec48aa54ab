"""``python -m kvplan``: the same as the ``kvplan`` command."""

from kvplan.cli.entry import main

if __name__ == "__main__":
    main()
