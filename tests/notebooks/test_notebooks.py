"""The notebooks run from top to bottom."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SLOW = {"spark"}  # starts a separate session
SETTLED = {"full_text", "sql"}  # stored with what its cells give, which is the same each time
WITH_OUTPUTS = {*SETTLED, "changes", "history", "quickstart", "spark", "vectors"}  # outputs contain times and sizes
LARGEST = 150_000  # bytes of a notebook


def test_notebooks_exist() -> None:
    assert NOTEBOOKS


# The kernel is another process; warnings of its client do not concern this package.
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] * (path.stem in SLOW), id=path.stem) for path in NOTEBOOKS],
)
def test_a_notebook_runs_in_any_folder(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where notebooks make their tables
    notebook = nbformat.read(path, as_version=4)
    stored = [outputs(cell) for cell in notebook.cells]
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert not [cell for cell in notebook.cells if cell.get("outputs") and cell.outputs[0].output_type == "error"]
    if path.stem in SETTLED:
        assert [outputs(cell) for cell in notebook.cells] == stored


def outputs(cell: nbformat.NotebookNode) -> list[str]:
    """Return the outputs of a cell as strings."""
    given = [output for output in cell.get("outputs", []) if output.get("name") != "stderr"]
    return [output.get("text") or output.data["text/plain"] for output in given]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_only_selected_notebooks_store_outputs(path: Path) -> None:
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert not [cell for cell in code if cell.execution_count]
    assert any(cell.outputs for cell in code) is (path.stem in WITH_OUTPUTS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_small_and_contain_no_machine_paths(path: Path) -> None:
    assert path.stat().st_size < LARGEST
    shown = [text for cell in nbformat.read(path, as_version=4).cells for text in outputs(cell)]
    assert not [text for text in shown if "/tmp/" in text or str(ROOT) in text]
