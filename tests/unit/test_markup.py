"""What notebooks show of a table, with hostile names."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.markup import PlanText, size_text

HOSTILE = "<script>alert(1)</script>"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    made = ld.write_dataset({HOSTILE: range(2_000)}, tmp_path_factory.mktemp("hostile") / "t.lance")
    made.create_scalar_index(f"`{HOSTILE}`", "BTREE", name=HOSTILE)
    made.insert({HOSTILE: range(5)})
    return made


def test_a_plan_is_a_string_with_an_html_form(table: ld.LanceDataset) -> None:
    plan = table.scanner(filter=f'"{HOSTILE}" > 1998').explain_plan()
    assert isinstance(plan, str)
    assert "<pre style" in plan._repr_html_()
    assert ESCAPED in plan._repr_html_()
    assert HOSTILE not in plan._repr_html_()
    assert pickle.loads(pickle.dumps(plan)) == plan == PlanText(str(plan))
    merge = table.merge_insert(HOSTILE).when_not_matched_insert_all().explain_plan()
    assert "&lt;" in merge._repr_html_()


def test_versions_are_a_list_that_shows_a_table(table: ld.LanceDataset) -> None:
    versions = table.versions()
    shown = versions._repr_html_()
    assert shown.index("<td>3</td>") < shown.index("<td>1</td>")
    assert "<td>2,005</td><td>2</td>" in shown
    assert "KiB</td>" in shown
    assert versions == list(versions)
    assert pickle.loads(pickle.dumps(versions)) == versions


def test_indexes_are_lists_that_show_tables(table: ld.LanceDataset) -> None:
    for listed, cell in ((table.describe_indices(), "<td>2,000</td>"), (table.list_indices(), "<td>BTree</td>")):
        shown = listed._repr_html_()
        assert cell in shown
        assert ESCAPED in shown
        assert HOSTILE not in shown
        assert isinstance(listed, list)
    assert pa.Table.from_pylist([{"name": each["name"]} for each in table.list_indices()]).num_rows == 1


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**20 - 1, "1.0 MiB"), (5 * 2**60, "5,120.0 PiB")],
)
def test_sizes_have_units(size: int, text: str) -> None:
    assert size_text(size) == text
