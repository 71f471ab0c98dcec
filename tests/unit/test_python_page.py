"""The tables of `docs/reference/python.md` name functions, parameters and constants that exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import lance_duck as ld
from lance_duck import examples
from lance_duck.index.registry import scalar_kinds

PAGE: Final = Path(__file__).parents[2] / "docs/reference/python.md"
VECTOR_KINDS: Final = {f"IVF_{kind}" for kind in ("FLAT", "SQ", "PQ", "RQ", "HNSW_FLAT", "HNSW_SQ", "HNSW_PQ")}
MODULES: Final = ("errors", "examples", "fragment", "loading", "optimize", "query", "rerankers", "torch.data")
HIDDEN: Final = {"_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version", "_distance", "_score"}
# Strings in the tables that are neither names nor calls.
LITERALS: Final = {"?", "$name", '{"v": 128}', "dataset", "execute", "path", "%2F", *HIDDEN}


def first_cells() -> Iterator[tuple[str, list[str]]]:
    """Yield each span in backquotes of the tables, with the calls of its row."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| "):
            spans = re.findall(r"`([^`]+)`", line)
            for span in spans:
                yield span, [other for other in spans if "(" in other]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("names")
    for module in MODULES:
        importlib.import_module(f"lance_duck.{module}")
    ds = ld.write_dataset(examples.docs(20), folder / "docs.lance")
    return {
        "ld": ld,
        "ds": ds,
        "con": ld.connect(folder),
        "search": ds.search(),
        "scanner": ds.scanner(),
        "rows": ld.loading.RowSelection.of(ds),
        "namespace": ld.connect_namespace("dir", {"root": str(folder)}),
        "transaction": ld.transaction(folder),
    }


def problem(span: str, calls: list[str], names: dict[str, Any]) -> str | None:
    """Return why a span of the page is wrong, or None."""
    if span in LITERALS or span.startswith("hf://"):
        return None
    node = ast.parse(span, mode="eval").body
    if isinstance(node, ast.Constant):
        return None
    if isinstance(node, ast.Name) and any(node.id in call for call in calls):
        return None
    called = node.func if isinstance(node, ast.Call) else node
    try:
        found = eval(ast.unparse(called), names)
    except (AttributeError, NameError) as error:
        return f"{span}: {error}"
    if not isinstance(node, ast.Call):
        return None
    parameters = inspect.signature(found).parameters
    used = [argument.id for argument in node.args if isinstance(argument, ast.Name)]
    used += [keyword.arg for keyword in node.keywords if keyword.arg]
    missing = [name for name in used if name not in parameters]
    return f"{span}: no parameter {missing}" if missing else None


def test_names_and_parameters_in_the_tables_exist(names: dict[str, Any]) -> None:
    spans = list(first_cells())
    assert len(spans) > 100
    assert not [found for span, calls in spans if (found := problem(span, calls, names))]


def test_index_kinds_of_the_page_are_those_that_can_be_built() -> None:
    section = PAGE.read_text(encoding="utf-8").split("| kind | for |")[1].split("```")[0]
    assert set(re.findall(r'`"(\w+)"`', section)) == {kind.sql_name for kind in scalar_kinds()} | VECTOR_KINDS


def test_builtin_parents_of_errors_on_the_page_are_right(names: dict[str, Any]) -> None:
    section = PAGE.read_text(encoding="utf-8").split("\n## Errors")[1]
    rows = re.findall(r"^\| `(ld\.\w+)` \| (.*) \|$", section, re.MULTILINE)
    assert len(rows) > 5
    for error, parents in rows:
        found = eval(error, names)
        assert [parent.__name__ for parent in found.__bases__ if parent.__module__ == "builtins"] == re.findall(
            r"`(\w+)`", parents
        )
