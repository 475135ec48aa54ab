"""Where the command starts: an interrupt while Python still imports ends it in silence too.

Nothing is imported on top: whatever is, can't be interrupted without a traceback.
"""


def main() -> None:
    """The console entry: runs the command line and exits with the contract's code."""
    try:
        from kvplan.cli.main import main as run

        run()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
