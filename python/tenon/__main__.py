"""The command line of Tenon: python -m tenon."""

import signal
import sys

from tenon import _tenon


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a command runs in C++, where Python would not see Ctrl-C
    return _tenon.command_line(["tenon", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
