"""Objects of a folder: checks of names, atomic changes, damaged settings, and drops with everything in a namespace."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.faults import Crash, Faults, stop_at

import lance_duck as ld
from lance_duck.errors import (
    AlreadyExistsError,
    CorruptError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    ReferencedError,
    StoreError,
    UnsupportedError,
    WrongTypeError,
)
from lance_duck.namespaces import (
    Catalog,
    CatalogDraft,
    CatalogObject,
    MacroDefinition,
    ObjectKey,
    TableMacroDefinition,
    TypeDefinition,
    ViewDefinition,
)
from lance_duck.namespaces.listing import Listing, ListingChange, NamedObject
from lance_duck.store.local import LocalStore

ROWS = {"x": [1, 2]}


def view(name: str, query: str = "SELECT 1") -> ViewDefinition:
    return ViewDefinition(name=name, query=query, uuid="u", created_ms=1)


@pytest.fixture
def namespace(tmp_path: Path) -> ld.DirectoryNamespace:
    return ld.DirectoryNamespace(str(tmp_path))


def put(namespace: ld.DirectoryNamespace, *stored: CatalogObject, replace: bool = False) -> None:
    def edit(draft: CatalogDraft) -> None:
        for each in stored:
            draft.put(each, replace=replace)

    namespace.change_catalog(edit)


def settings(namespace: ld.DirectoryNamespace) -> dict[str, str]:
    return dict(ld.dataset(f"{namespace.root}/__manifest").config())


def versions(namespace: ld.DirectoryNamespace) -> int:
    return ld.dataset(f"{namespace.root}/__manifest").version


def test_a_plain_folder_has_a_catalog_of_its_tables(namespace: ld.DirectoryNamespace, tmp_path: Path) -> None:
    assert namespace.catalog() == Catalog({(): {}}, {})
    namespace.create_table("t", ROWS)
    assert namespace.catalog() == Catalog({(): {}}, {("t",): namespace.describe_table("t")})
    assert namespace.objects() == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.lance"]
    with pytest.raises(NotFoundError):
        namespace.catalog("s")


def test_one_version_changes_namespaces_and_objects(namespace: ld.DirectoryNamespace) -> None:
    stored = [
        view("v"),
        view("s$v", "FROM t"),
        MacroDefinition(name="v", definitions="(a) AS a"),
        TableMacroDefinition(name="v", definitions="(a) AS TABLE SELECT a"),
        TypeDefinition(name="v", definition="INT"),
    ]

    def edit(draft: CatalogDraft) -> None:
        draft.create_namespace("s", {"comment": "c", "k": "v"})
        for each in stored:
            draft.put(each)
        assert (draft.namespaces(), len(draft.objects())) == (["s"], 5)

    namespace.change_catalog(edit)
    assert versions(namespace) == 1
    catalog = namespace.catalog()
    assert catalog.namespaces == {(): {}, ("s",): {"comment": "c", "k": "v"}}
    assert catalog.objects == {each.key: each for each in stored}
    assert namespace.objects("s") == {stored[1].key: stored[1]}
    assert namespace.catalog("s") == Catalog({("s",): {"comment": "c", "k": "v"}}, {}, {stored[1].key: stored[1]})
    assert settings(namespace)["lance_duck.catalog"] == "1"


def test_a_catalog_covers_a_namespace_and_its_children(namespace: ld.DirectoryNamespace) -> None:
    for name in ("a", "a$b", "a$b$c"):
        namespace.create_namespace(name)
        put(namespace, view(f"{name}$v"))
        namespace.create_table(f"{name}$t", ROWS)
    assert list(namespace.catalog().namespaces) == [(), ("a",)]
    found = namespace.catalog("a")
    assert list(found.namespaces) == [("a",), ("a", "b")]
    assert list(found.tables) == [("a", "b", "t"), ("a", "t")]
    assert [key.name for key in found.objects] == [("a", "b", "v"), ("a", "v")]


def test_an_error_or_an_empty_edit_makes_no_version(namespace: ld.DirectoryNamespace, tmp_path: Path) -> None:
    def failing(draft: CatalogDraft) -> None:
        draft.put(view("v"))
        draft.put(view("w"))
        draft.put(view("V"))

    with pytest.raises(AlreadyExistsError):
        namespace.change_catalog(failing)
    namespace.change_catalog(lambda draft: None)
    assert not list(tmp_path.iterdir())
    put(namespace, view("v"))
    put(namespace, view("v"), replace=True)
    namespace.create_namespace("s")
    namespace.create_namespace("s", exist_ok=True)
    assert versions(namespace) == 2


def test_tables_and_views_share_names_without_case(namespace: ld.DirectoryNamespace) -> None:
    namespace.create_table("t", ROWS)
    namespace.create_namespace("s")
    namespace.create_table("s$t", ROWS)
    put(namespace, view("v"), view("s$v"), view("s"), MacroDefinition(name="t", definitions="() AS 1"))
    taken: list[Callable[[], object]] = [
        lambda: put(namespace, view("T"), replace=True),
        lambda: put(namespace, view("s$T"), replace=True),
        lambda: put(namespace, view("V")),
        lambda: put(namespace, TypeDefinition(name="a", definition=""), TypeDefinition(name="A", definition="")),
        lambda: namespace.create_table("V", ROWS),
        lambda: namespace.create_table("s$V", ROWS),
        lambda: namespace.declare_table("s$v"),
        lambda: namespace.register_table("s$V", "t.lance"),
        lambda: namespace.rename_table("s$t", "s$V"),
        lambda: namespace.change_catalog(lambda draft: draft.rename(ObjectKey("view", ("v",)), "T")),
        lambda: namespace.change_catalog(lambda draft: draft.rename(ObjectKey("view", ("v",)), "s$V")),
    ]
    before = versions(namespace)
    for call in taken:
        with pytest.raises(AlreadyExistsError):
            call()
    assert versions(namespace) == before
    put(namespace, view("ä"), view("Ä"), view("s$u"))
    assert namespace.list_tables("s") == ["t"]


def test_a_replaced_object_takes_the_case_of_the_new_name(namespace: ld.DirectoryNamespace) -> None:
    put(namespace, view("View", "SELECT 1"))
    put(namespace, view("VIEW", "SELECT 2"), replace=True)
    assert namespace.objects() == {ObjectKey("view", ("VIEW",)): view("VIEW", "SELECT 2")}
    namespace.change_catalog(lambda draft: draft.remove(ObjectKey("view", ("view",))))
    assert namespace.objects() == {}
    assert settings(namespace) == {
        "lance_duck.catalog": "1",
        "lance_duck.object.view.VIEW": "",
        "lance_duck.object.view.View": "",
    }
    assert (namespace.forget_removed_objects(), namespace.forget_removed_objects()) == (2, 0)
    assert settings(namespace) == {"lance_duck.catalog": "1"}


def test_an_object_is_renamed_as_it_is_stored(namespace: ld.DirectoryNamespace) -> None:
    namespace.create_namespace("s")
    put(namespace, view("v"))
    text = '{"query":"SELECT 1","later":true}'
    ld.dataset(f"{namespace.root}/__manifest").update_config({"lance_duck.object.view.v": text})
    namespace.change_catalog(lambda draft: draft.rename(ObjectKey("view", ("V",)), "s$w"))
    assert settings(namespace)["lance_duck.object.view.s$w"] == text
    namespace.change_catalog(lambda draft: draft.rename(ObjectKey("view", ("s", "w")), "s$W"))
    assert [key.name for key in namespace.catalog().objects] == [("s", "W")]


def test_missing_and_invalid_names_are_reported(namespace: ld.DirectoryNamespace) -> None:
    put(namespace, view("v"))
    missing: list[Callable[[CatalogDraft], object]] = [
        lambda draft: draft.put(view("s$v")),
        lambda draft: draft.remove(ObjectKey("view", ("w",))),
        lambda draft: draft.remove(ObjectKey("macro", ("v",))),
        lambda draft: draft.rename(ObjectKey("view", ("w",)), "x"),
        lambda draft: draft.rename(ObjectKey("view", ("v",)), "s$v"),
        lambda draft: draft.update_namespace("s", {}),
        lambda draft: draft.drop_namespace("s"),
        lambda draft: draft.remove_table("v"),
    ]
    for call in missing:
        with pytest.raises(NotFoundError):
            namespace.change_catalog(call)
    invalid: list[Callable[[CatalogDraft], object]] = [
        lambda draft: draft.put(ViewDefinition(name=("a$b",), query="")),
        lambda draft: draft.rename(ObjectKey("view", ("v",)), ["a$b"]),
        lambda draft: draft.rename(ObjectKey("view", ("v",)), ""),
        lambda draft: draft.create_namespace("a b"),
        lambda draft: draft.create_namespace(["a$b"]),
        lambda draft: draft.update_namespace("", {}),
    ]
    for call in invalid:
        with pytest.raises(InvalidInputError):
            namespace.change_catalog(call)
    with pytest.raises(UnsupportedError, match="manifest_enabled"):
        put(ld.DirectoryNamespace(namespace.root, manifest_enabled=False), view("v"))


def test_wrong_arguments_name_the_argument(namespace: ld.DirectoryNamespace) -> None:
    wrong: list[Callable[[Any], object]] = [
        lambda draft: draft.put("v"),
        lambda draft: draft.remove("v"),
        lambda draft: draft.create_namespace(7),
        lambda draft: draft.update_namespace("s", 7),
        lambda draft: ViewDefinition(name=7, query=""),  # type: ignore[arg-type]
        lambda draft: ViewDefinition(nam="v", query=""),  # type: ignore[call-arg]
        lambda draft: draft.puts,
    ]
    namespace.create_namespace("s")
    for change in wrong:
        with pytest.raises((WrongTypeError, AttributeError)):
            namespace.change_catalog(change)
    with pytest.raises(WrongTypeError, match="edit"):
        namespace.change_catalog(view("v"))  # type: ignore[arg-type]


def test_a_view_gets_an_identity_that_survives_changes(namespace: ld.DirectoryNamespace) -> None:
    put(namespace, ViewDefinition(name="v", query="SELECT 1"))
    (first,) = namespace.objects().values()
    assert isinstance(first, ViewDefinition)
    assert first.uuid is not None
    assert first.created_ms is not None
    put(namespace, replace(first, comment="c"), replace=True)
    namespace.change_catalog(lambda draft: draft.rename(first.key, "w"))
    assert namespace.objects() == {ObjectKey("view", ("w",)): replace(first, name=("w",), comment="c")}


def test_properties_of_a_namespace_are_set_and_removed(namespace: ld.DirectoryNamespace) -> None:
    namespace.create_namespace("s", {"comment": "c", "k": "v"})
    namespace.update_namespace("s", {"comment": None, "none": None, "n": "1"})
    assert namespace.describe_namespace("s") == {"k": "v", "n": "1"}
    namespace.update_namespace("s", {"k": None, "n": None})
    assert namespace.catalog().namespaces == {(): {}, ("s",): {}}
    with pytest.raises(NotFoundError):
        namespace.update_namespace("t", {"a": "b"})
    namespace.create_table("s$t", ROWS)
    with pytest.raises(NotFoundError):
        namespace.update_namespace("s$t", {"a": "b"})


def test_damaged_objects_do_not_hide_others(namespace: ld.DirectoryNamespace) -> None:
    namespace.create_table("t", ROWS)
    namespace.create_namespace("s", {"k": "v"})
    put(namespace, view("v"), view("s$v"))
    damaged = {
        "lance_duck.object.view.bad": "{",
        "lance_duck.object.view.": "{}",
        "lance_duck.object.view.s$": "{}",
        "lance_duck.object.view.s$x": '{"query":7}',
        "lance_duck.object.view.V": '{"query":"SELECT 2"}',
        "lance_duck.object.view.T": '{"query":"SELECT 2"}',
        "lance_duck.object.sequence.q": "{}",
        "lance_duck.object.later.q": "{}",
        "lance_duck.object.view.gone$v": '{"query":"SELECT 2"}',
        "lance_duck.object.": "x",
        "lance_duck.object.view": "x",
    }
    ld.dataset(f"{namespace.root}/__manifest").update_config(damaged)
    catalog = namespace.catalog()
    assert [key.name for key in catalog.objects] == [("V",), ("s", "v")]
    assert list(catalog.tables) == [("t",)]
    assert {str(key): reason for key, reason in catalog.broken.items()} == {
        "later q": "unknown kind of object, 'later'",
        "sequence q": "unknown kind of object, 'sequence'",
        "view ": "the name has an empty part",
        "view T": "another table or object has this name, compared without case",
        "view bad": "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        "view s$": "the name has an empty part",
        "view s$x": "query: expected a string, found 7",
        "view v": "another table or object has this name, compared without case",
    }
    assert {problem.where for problem in namespace.find_problems()} == {
        *map(str, catalog.broken),
        "view gone$v",
    }
    put(namespace, view("bad"), replace=True)
    namespace.change_catalog(lambda draft: draft.remove(ObjectKey("later", ("q",))))
    namespace.drop_namespace("s", cascade=True)
    assert {key.name[-1] for key in namespace.catalog().objects} == {"V", "bad"}
    namespace.create_namespace("gone")
    assert namespace.catalog("gone").objects == {}


def test_damaged_rows_only_hide_objects_of_their_kind(namespace: ld.DirectoryNamespace) -> None:
    put(namespace, view("a"), view("b"), view("s"))
    rows = [NamedObject("a", "namespace", None, "{"), NamedObject("B", "table", ".."), NamedObject("s", "view")]
    Listing(namespace.root).change(lambda names: ListingChange(added=rows))
    catalog = namespace.catalog()
    assert [key.name for key in catalog.objects] == [("a",), ("s",)]
    assert catalog.namespaces == {(): {}, ("a",): {}}
    assert [str(key) for key in catalog.broken] == ["namespace a", "table B", "view b"]


def test_objects_of_a_newer_form_are_only_read(namespace: ld.DirectoryNamespace) -> None:
    namespace.create_namespace("s")
    put(namespace, view("v"))
    for form in ("2", "x"):
        ld.dataset(f"{namespace.root}/__manifest").update_config({"lance_duck.catalog": form})
        changes: list[Callable[[CatalogDraft], object]] = [
            lambda draft: draft.put(view("w")),
            lambda draft: draft.remove(ObjectKey("view", ("v",))),
            lambda draft: draft.rename(ObjectKey("view", ("v",)), "w"),
        ]
        for change in changes:
            with pytest.raises(UnsupportedError, match=f"__manifest: objects of form {form}: expected 1"):
                namespace.change_catalog(change)
        assert namespace.objects() == {ObjectKey("view", ("v",)): view("v")}
        assert [problem.what for problem in namespace.find_problems()] == [f"objects of form {form}, expected 1"]
        namespace.create_table(f"s$t{form}", ROWS)
        namespace.create_namespace(f"n{form}")
    assert namespace.list_tables("s") == ["t2", "tx"]


def test_a_namespace_with_objects_is_not_empty(namespace: ld.DirectoryNamespace) -> None:
    namespace.create_namespace("s")
    namespace.create_namespace("st")
    put(namespace, view("s$v"), view("st$v"), view("s"))
    with pytest.raises(ReferencedError, match=r"s: the namespace is not empty: found view s\$v"):
        namespace.drop_namespace("s")
    namespace.change_catalog(lambda draft: draft.remove(ObjectKey("view", ("s", "v"))))
    namespace.drop_namespace("s")
    assert [key.name for key in namespace.catalog().objects] == [("s",), ("st", "v")]


def test_a_cascade_drops_everything_in_a_namespace(namespace: ld.DirectoryNamespace, tmp_path: Path) -> None:
    namespace.create_table("t", ROWS)
    for name in ("s", "s$a", "u"):
        namespace.create_namespace(name)
        namespace.create_table(f"{name}$t", ROWS)
        put(namespace, view(f"{name}$v"))
    namespace.declare_table("s$later")
    namespace.register_table("s$root", "t.lance")
    namespace.register_table("s$inside", "t.lance/data")
    namespace.register_table("s$again", os.path.basename(namespace.describe_table("u$t").location))
    before = versions(namespace)
    namespace.drop_namespace("s", cascade=True)
    assert versions(namespace) == before + 1
    found = namespace.catalog()
    assert (list(found.namespaces), list(found.tables)) == ([(), ("u",)], [("t",), ("u", "t")])
    assert list(found.objects) == [ObjectKey("view", ("u", "v"))]
    assert namespace.open_table("t").count_rows() == namespace.open_table("u$t").count_rows() == 2
    assert not [path for path in tmp_path.iterdir() if "s$" in path.name and any(path.iterdir())]
    with pytest.raises(NotFoundError):
        namespace.drop_namespace("s", cascade=True)


def test_a_dropped_table_is_removed_after_the_commit(namespace: ld.DirectoryNamespace, tmp_path: Path) -> None:
    namespace.create_namespace("s")
    for name in ("s$t", "s$u", "s$w"):
        namespace.create_table(name, ROWS)

    def edit(draft: CatalogDraft) -> None:
        draft.drop_table("s$t")
        draft.rename_table("s$u", "s$t")
        draft.put(view("s$u", "FROM s.t"))
        draft.remove_table("s$w")

    namespace.change_catalog(edit)
    assert (namespace.list_tables("s"), [key.name for key in namespace.objects("s")]) == (["t"], [("s", "u")])
    assert sorted(path.name[9:] for path in tmp_path.glob("*_*$*") if any(path.iterdir())) == ["s$u", "s$w"]
    with pytest.raises(NotFoundError):
        namespace.change_catalog(lambda draft: draft.drop_table("s$u"))


def test_a_cascade_skips_tables_outside_the_root(namespace: ld.DirectoryNamespace, tmp_path: Path) -> None:
    outside = ld.write_dataset(ROWS, tmp_path.parent / f"{tmp_path.name} outside.lance")
    namespace.create_namespace("s")
    row = NamedObject("s$t", "table", f"../{tmp_path.name} outside.lance")
    namespace.change_catalog(lambda draft: draft.add_table(row))
    namespace.drop_namespace("s", cascade=True)
    assert (namespace.list_namespaces(), ld.dataset(outside.uri).count_rows()) == ([], 2)


def test_a_change_that_fails_before_its_commit_leaves_the_catalog(
    namespace: ld.DirectoryNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace.create_namespace("s")
    put(namespace, view("v"))
    before = namespace.catalog()
    real = LocalStore.put_if_absent

    def failing(self: LocalStore, path: str, *args: Any, **options: Any) -> None:
        if path.endswith(".manifest"):
            raise StoreError("the disk is full", where=path)
        real(self, path, *args, **options)

    monkeypatch.setattr(LocalStore, "put_if_absent", failing)
    with pytest.raises(StoreError):
        put(namespace, view("w"))
    with pytest.raises(StoreError):
        namespace.drop_namespace("s")
    monkeypatch.undo()
    assert namespace.catalog() == before
    put(namespace, view("w"))
    assert [key.name for key in namespace.objects()] == [("v",), ("w",)]


@pytest.mark.parametrize("store", ["local", "memory"])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_crash_at_any_step_leaves_the_old_or_the_new_catalog(is_new: bool, store: str, tmp_path: Path) -> None:
    root = str(tmp_path) if store == "local" else f"memory://{tmp_path.name}"

    def edit(draft: CatalogDraft) -> None:
        draft.create_namespace("s")
        draft.put(view("s$v"))
        if not is_new:
            draft.remove(view("old").key)

    def folder(name: str) -> ld.DirectoryNamespace:
        namespace = ld.DirectoryNamespace(f"{root}/{name}")
        if not is_new:
            put(namespace, view("old"))
        return namespace

    namespace = folder("whole")
    with Faults() as seen:
        namespace.change_catalog(edit)
    changed, outcomes = namespace.catalog(), []
    for step in range(len(seen.steps)):
        namespace = folder(str(step))
        before = namespace.catalog()
        with suppress(Crash), Faults(stop_at(step)):
            namespace.change_catalog(edit)
        outcomes.append(namespace.catalog() == before)
        if outcomes[-1]:
            namespace.change_catalog(edit)
        assert namespace.catalog() == changed
    assert outcomes == sorted(outcomes, reverse=True)
    assert outcomes[0]


def test_a_crash_during_a_cascade_leaves_only_files_without_a_name(
    namespace: ld.DirectoryNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace.create_namespace("s")
    namespace.create_table("s$t", ROWS)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ld.DirectoryNamespace, "discard", crash)
    with pytest.raises(KeyboardInterrupt):
        namespace.drop_namespace("s", cascade=True)
    monkeypatch.undo()
    assert namespace.catalog() == Catalog({(): {}}, {})
    namespace.create_namespace("s")
    assert namespace.create_table("s$t", ROWS).version == 1


def test_concurrent_threads_lose_no_object(tmp_path: Path) -> None:
    def work(number: int) -> None:
        namespace = ld.DirectoryNamespace(str(tmp_path))
        put(namespace, view(f"v{number}"))
        namespace.create_namespace(f"s{number}")
        put(namespace, view(f"s{number}$v"))
        if number % 2:
            namespace.change_catalog(lambda draft: draft.remove(ObjectKey("view", (f"v{number}",))))
            namespace.forget_removed_objects()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))
    found = {key.name for key in ld.DirectoryNamespace(str(tmp_path)).catalog().objects}
    assert found == {*((f"v{n}",) for n in range(0, 8, 2)), *((f"s{n}", "v") for n in range(8))}


def test_one_of_several_writers_of_an_object_wins(tmp_path: Path) -> None:
    def claim(number: int) -> bool:
        try:
            put(ld.DirectoryNamespace(str(tmp_path)), view("v", f"SELECT {number}"))
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(claim, range(8))) == 1


def test_a_stamp_changes_with_the_catalog(namespace: ld.DirectoryNamespace, tmp_path: Path) -> None:
    assert namespace.stamp() == 0
    namespace.create_table("t", ROWS)
    assert namespace.stamp() == 0
    put(namespace, view("v"))
    assert namespace.stamp() is None
    folder, past = tmp_path / "__manifest" / "_versions", time.time_ns() - 10**9
    os.utime(folder, ns=(past, past))
    assert namespace.stamp() == namespace.stamp() == past
    assert ld.DirectoryNamespace("memory://stamp").stamp() is None


def test_problems_and_repair_of_rows_that_pylance_left(namespace: ld.DirectoryNamespace) -> None:
    assert (namespace.find_problems(), namespace.repair(dry_run=True)) == ([], [])
    namespace.create_namespace("s")
    namespace.create_table("s$t", ROWS)
    rows = [NamedObject(f"s$t$0000000000000000000{number}", "table_version", None, "{}") for number in (1, 2)]
    rows += [NamedObject("odd", "view"), NamedObject("lost$t", "table", "t.lance"), NamedObject("s$up", "table", "..")]
    rows += [NamedObject("s$gone", "table", "gone/t")]
    Listing(namespace.root).change(lambda names: ListingChange(added=rows))
    what = "2 rows of the type table_version, with which pylance 8 and newer refuse every change"
    assert [(problem.where, problem.what, problem.is_damage) for problem in namespace.find_problems()] == [
        ("__manifest", what, False),
        ("__manifest", "1 rows of the unknown type 'view', with which pylance refuses every change", False),
        (
            "table s$up",
            f"'..': the path is outside the table's folder: expected a file below {namespace.root}; nothing was read",
            True,
        ),
        ("table lost$t", "the folder t.lance does not exist", True),
        ("table s$gone", "the folder gone/t does not exist", True),
        ("table lost$t", "the namespace lost does not exist", False),
    ]
    assert [problem.what for problem in namespace.repair(dry_run=True)] == [what]
    assert [problem.what for problem in namespace.repair()] == [what]
    assert namespace.repair() == []
    assert [problem.where for problem in namespace.find_problems()] == [
        "__manifest",
        "table s$up",
        "table lost$t",
        "table s$gone",
        "table lost$t",
    ]
    assert namespace.open_table("s$t").count_rows() == 2


def test_a_damaged_manifest_is_a_problem(namespace: ld.DirectoryNamespace, tmp_path: Path) -> None:
    put(namespace, view("v"))
    namespace.create_namespace("s")
    for each in (tmp_path / "__manifest" / "data").iterdir():
        data = bytearray(each.read_bytes())
        data[10] ^= 255
        each.write_bytes(data)
    with pytest.raises(LanceDuckError):
        namespace.catalog()
    problems = namespace.find_problems()
    assert problems
    assert all(problem.is_damage for problem in problems)
    with pytest.raises(CorruptError):
        ld.dataset(f"{namespace.root}/__manifest").validate()


def test_a_rest_service_does_not_store_objects() -> None:
    rest = ld.RestNamespace("http://127.0.0.1:9")
    with pytest.raises(UnsupportedError, match="does not store views, macros and types"):
        rest.change_catalog(lambda draft: draft.put(view("v")))
    with pytest.raises(UnsupportedError, match="cannot change the properties"):
        rest.update_namespace("s", {"comment": "c"})
    assert rest.stamp() is None
