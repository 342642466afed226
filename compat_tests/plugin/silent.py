"""A debugger for `--pdbcls` that returns at once."""

from __future__ import annotations

import pdb

__all__ = ["Debugger"]


class Debugger(pdb.Pdb):
    def interaction(self, *_: object) -> None:
        pass
