"""Commands that accept a folder with `__manifest` instead of a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import rows, run

import lance_duck as ld
from lance_duck.errors import NotFoundError
from lance_duck.namespaces import ViewDefinition
from lance_duck.namespaces.listing import Listing, ListingChange, NamedObject

WHAT = "1 rows of the type table_version, with which pylance 8 and newer refuse every change"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    namespace = ld.DirectoryNamespace(str(tmp_path))
    namespace.create_table("t", {"x": [1]})
    namespace.change_catalog(lambda draft: draft.put(ViewDefinition(name="v", query="FROM t")))
    return str(tmp_path)


@pytest.mark.parametrize("path", ["", "/", "/__manifest", "/__manifest/"])
def test_a_folder_is_validated_and_repaired(folder: str, path: str) -> None:
    place = folder + path
    assert rows("validate", place) == []
    row = NamedObject("t$1", "table_version", None, "{}")
    Listing(folder).change(lambda names: ListingChange(added=[row]))
    assert rows("validate", place) == [{"where": "__manifest", "problem": WHAT}]
    assert [each["what"] for each in rows("repair", place, "--dry-run")] == [WHAT]
    assert [each["what"] for each in rows("repair", place)] == [WHAT]
    assert rows("validate", place) == rows("repair", place) == []


def test_damage_sets_the_exit_code(folder: str) -> None:
    ld.dataset(f"{folder}/__manifest").update_config({"lance_duck.object.view.w": "{}"})
    result = run("validate", folder)
    assert (result.exit_code, "view w,query is missing" in result.stdout) == (1, True)


def test_a_folder_without_a_manifest_is_not_a_table(tmp_path: Path) -> None:
    ld.write_dataset({"x": [1]}, tmp_path / "t.lance")
    for command in ("validate", "repair"):
        with pytest.raises(NotFoundError, match="Lance table not found"):
            run(command, str(tmp_path))
