"""An adapter of Harlequin, the SQL IDE of the terminal: `harlequin -a lance FOLDER`, or tables instead of a folder.

You hold: words of a shell. You get: a connection for Harlequin's editor and catalogue.
Never here: SQL, which goes to `duck`.
"""

from lance_duck.harlequin.adapter import LanceAdapter

__all__ = ["LanceAdapter"]
