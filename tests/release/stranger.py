"""A program of someone who has installed the package: run by `check.py`, and read by type checkers."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import lance_duck as ld


def use(place: str) -> list[int]:
    """Write, change and index a table, and read it in both ways."""
    dataset: ld.LanceDataset = ld.write_dataset({"id": list(range(100))}, f"{place}/t.lance")
    dataset.delete("id >= 10")
    dataset.create_scalar_index("id", "BTREE")
    with ld.connect(place) as connection:
        (count,) = connection.execute("SELECT count(*) FROM t WHERE id > 3").fetchone()
    version: int = dataset.version
    return [version, int(count), dataset.count_rows("id < 4")]


def main(version: str, repository: str) -> None:
    """Check the installed package as a new user would."""
    assert ld.__version__ == version, ld.__version__
    package = Path(ld.__file__).parent
    assert Path(repository) not in package.parents, package
    assert (package / "py.typed").is_file()
    with TemporaryDirectory() as place:
        assert use(place) == [3, 6, 4]
        words = [str(Path(sys.executable).parent / "lance-duck"), "info", f"{place}/t.lance", "--json"]
        assert '"rows": 10' in subprocess.run(words, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
