"""The page `docs/reference/python.md`: whatever stands there in backquotes is a name that is there, or code that runs."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck import examples

ROOT: Final = Path(__file__).parents[2]
WORDS: Final = {
    *("polars", "torch", "rest", "columns", "ds", "q", "k", "ls", "t", "Expression"),
    *("__arrow_c_stream__", "pyarrow.dataset.Dataset"),
}
# What has the names in a line of the page, by the words that the line begins with, besides what every line may name.
OWNERS: Final = {
    "polars": ["pl.Expr", "pl.col('a').str"],
    "PyTorch": ["ld.torch.data", "ld.torch.data.LanceDataset"],
    "a search, step by step": ["ds.search(q)", "ds.search()"],
    "recall of an index": ["ds.search(q)"],
    "full text |": ["ld.query"],
    "namespaces": ["namespace"],
}


def spans() -> list[tuple[str, str]]:
    """Return each line of the page's table with each text in backquotes that it has, in order."""
    lines = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8").splitlines()
    cells = [line.removeprefix("| ") for line in lines if line.startswith("| ")]
    return [(cell, span.replace(r"\|", "|")) for cell in cells for span in re.findall(r"`([^`]+)`", cell)]


def examples_of_the_page() -> dict[str, str]:
    """Return the code, or the path of a test after "@ ", for each text in backquotes that `python_page.txt` has."""
    text = (Path(__file__).parent / "python_page.txt").read_text(encoding="utf-8")
    return dict(part.split("\n", 1) for part in re.split(r"^> ", text, flags=re.MULTILINE)[1:])


@pytest.fixture
def scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    rows = examples.docs(60)
    for name, values in {
        "label": [place % 6 for place in range(60)],
        "labels": [["a", "b"]] * 60,
        "price": np.arange(60.0),
    }.items():
        rows = rows.append_column(name, pa.array(values))
    stable = ld.write_dataset({"id": [1]}, "data/s.lance", enable_stable_row_ids=True)
    stable.insert({"id": [2]})
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    names: dict[str, Any] = {
        "ds": ld.write_dataset(rows, "data/t.lance"),
        "stable": stable,
        "blobs": ld.write_dataset(pa.table([[b"abc"]], schema=pa.schema([blob])), "data/b.lance"),
        "uri": "data/t.lance",
        "folder": "data",
        "q": examples.embed("a ship"),
        "con": ld.connect("data"),
    }
    exec(
        "import polars as pl, pyarrow as pa, lance_duck, lance_duck as ld\n"
        "import lance_duck.loading, lance_duck.torch.data\n"
        "from lance_duck import examples\nfrom lance_duck.query import MatchQuery, PhraseQuery",
        names,
    )
    return names


def is_there(name: str, owners: list[str], scope: dict[str, Any]) -> bool:
    for place in ["", *(f"{owner}." for owner in owners)]:
        try:
            eval(place + name, scope)
        except (AttributeError, NameError):
            continue
        return True
    return False


@pytest.mark.filterwarnings("ignore")  # of the libraries that the page names
def test_what_the_page_says_is_there_and_runs(scope: dict[str, Any]) -> None:
    written = examples_of_the_page()
    missing = []
    for line, span in spans():
        if span in WORDS or written.get(span, "").startswith("@ "):
            continue
        name = re.fullmatch(r"([\w.]+)(\(\))?", span)
        if span in written:
            scope["kinds"] = re.findall(r'"([A-Z_]+)"', span)
            exec(written[span], scope)
        elif name is None:
            exec(span if span.partition("(")[0].count(".") else f"ds.{span}", scope)
        else:
            owners = [owner for start, names in OWNERS.items() if line.startswith(start) for owner in names]
            if not is_there(name[1], [*owners, "ds", "ds.optimize", "ld"], scope):
                missing.append(span)
    assert not missing


def test_examples_of_the_page_stand_on_it_and_tests_of_hosts_are_there() -> None:
    written = examples_of_the_page()
    assert {*written, *WORDS} <= {span for _, span in spans()}
    places = [code.removeprefix("@ ").strip() for code in written.values() if code.startswith("@ ")]
    assert not [place for place in places if not (ROOT / place).exists()]


def test_modules_that_the_page_names_are_there() -> None:
    names = {span for _, span in spans() if re.fullmatch(r"lance_duck\.[\w.]+", span)}
    assert {"lance_duck.examples", "lance_duck.loading", "lance_duck.torch.data", "lance_duck.query"} <= names
    for name in names - {"lance_duck.errors.LanceDuckError"}:
        importlib.import_module(name)
