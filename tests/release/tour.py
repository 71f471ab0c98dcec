"""The code of the README and of the site's first page, in an installation without compiled kernels.

Prints the number of compiled kernels; `check.py` expects 0 for a wheel with a pack.
"""

import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from lance_duck.kernels.notice import first_use


def main(*pages: str) -> None:
    """Run the first Python block of each page in an empty folder."""
    blocks = [
        re.findall(r"^```python\n(.*?)^```", Path(page).read_text("utf-8"), re.DOTALL | re.M)[0] for page in pages
    ]
    for block in blocks:
        with TemporaryDirectory() as folder:
            os.chdir(folder)
            exec(block, {"__name__": "__main__"})
            os.chdir("/")
    print(f"compiled kernels: {first_use.compiled}")


if __name__ == "__main__":
    main(*sys.argv[1:])
