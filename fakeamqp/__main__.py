"""`python -m fakeamqp` is the command `fakeamqp`."""

from __future__ import annotations

import sys

from fakeamqp.cli import main

if __name__ == "__main__":
    sys.exit(main())
