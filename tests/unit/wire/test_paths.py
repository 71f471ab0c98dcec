from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.wire import paths
from lance_duck.wire.paths import ManifestName, parse_manifest_name


@given(st.integers(1, 2**64 - 1), st.sampled_from([0, 1, 2]))
def test_manifest_names_round_trip(version: int, naming: int) -> None:
    if naming == 1 and version >= 10**19:
        return  # 20 digits are naming 2
    name = ManifestName(version, naming)
    assert parse_manifest_name(name.path.removeprefix("_versions/")) == name


@pytest.mark.parametrize("naming", [1, 2])
def test_a_staged_manifest_is_not_a_manifest(naming: int) -> None:
    name = ManifestName(7, naming)
    staged = paths.staged_manifest(name, UUID(int=1))
    assert staged == f"{name.path}-00000000-0000-0000-0000-000000000001"
    assert paths.parse_staged_manifest(staged) == name
    assert paths.parse_manifest_path(name.path) == name
    assert paths.parse_manifest_path(staged) is paths.parse_staged_manifest(name.path) is None
    assert paths.newest_manifest([staged.removeprefix("_versions/")]) is None
    assert paths.parse_manifest_path("7.manifest") is None


def test_newer_versions_sort_first() -> None:
    names = [ManifestName(v, 2).path for v in (1, 9, 10, 2**40)]
    assert names == sorted(names, reverse=True)
    assert names[0] == "_versions/18446744073709551614.manifest"


@pytest.mark.parametrize(
    "name",
    ["latest_version_hint.json", "x.manifest", "1.manifest#1", "-1.manifest", "99999999999999999999.manifest", ""],
)
def test_other_file_names_are_not_manifests(name: str) -> None:
    assert parse_manifest_name(name) is None


def test_current_manifest_names_are_tried_first() -> None:
    assert paths.manifest_candidates(3) == ("_versions/18446744073709551612.manifest", "_versions/3.manifest")
    assert paths.manifest_candidates(2**63 + 1) == (f"_versions/d{2**63 + 1}.manifest",)


def test_other_paths_have_the_documented_form() -> None:
    assert paths.data_file("x.lance") == "data/x.lance"
    assert paths.data_file("x.lance", is_dataset_root=False) == "x.lance"
    assert paths.data_file("/x.lance") == "/x.lance"
    assert paths.ref_file(paths.BRANCHES, "dev/x") == "_refs/branches/dev%2Fx.json"
    assert paths.ref_file(paths.TAGS, "größe.1_a-b") == "_refs/tags/gr%C3%B6%C3%9Fe.1_a-b.json"
    assert paths.branch_root("dev/x") == "tree/dev/x"
    assert paths.ref_name("dev%2Fx.json") == "dev/x"
    assert paths.ref_name("gr%C3%B6%C3%9Fe.1_a-b.json") == "größe.1_a-b"
    assert paths.ref_name("x.txt") is None
    assert paths.blob_file("ab.lance", 1) == f"data/ab/1{'0' * 31}.blob"


def test_the_newest_manifest_is_found_with_both_naming_schemes() -> None:
    modern = sorted(paths.ManifestName(version, 2).path.rpartition("/")[2] for version in (1, 9, 10))
    assert paths.newest_manifest(modern) == paths.ManifestName(10, 2)
    assert paths.newest_manifest([*modern, "latest_version_hint.json"]) == paths.ManifestName(10, 2)
    assert paths.newest_manifest(sorted([*modern, "11.manifest"])) == paths.ManifestName(11, 1)
    assert paths.newest_manifest(["1.manifest", "10.manifest", "9.manifest"]) == paths.ManifestName(10, 1)
    assert paths.newest_manifest(["x" * 20 + ".manifest", "d5.manifest", "notes.txt"]) is None


@pytest.mark.parametrize(
    "other",
    ["d9223372036854775809.manifest", "!" * 20 + ".manifest", "99999999999999999999.manifest", ".tmp1"],
)
def test_the_newest_manifest_is_found_in_any_order_among_other_files(other: str) -> None:
    modern = [paths.ManifestName(version, 2).path.rpartition("/")[2] for version in (9, 10, 1)]
    assert paths.newest_manifest([other, *modern]) == paths.newest_manifest([*modern, other])
    assert paths.newest_manifest([*modern, other]) == paths.ManifestName(10, 2)
    assert paths.newest_manifest(["9.manifest", other, "10.manifest"]) == paths.ManifestName(10, 1)
    assert paths.newest_manifest([other]) is None


@given(st.lists(st.sampled_from(["", "d", "0", "٣", "-"]) | st.just(""), max_size=2), st.data())
def test_the_newest_manifest_equals_the_maximum_of_parsed_names(odd: list[str], data: st.DataObject) -> None:
    named = st.builds(ManifestName, st.integers(1, 2**64 - 1) | st.integers(1, 12), st.sampled_from([0, 1, 2]))
    kinds = data.draw(st.sampled_from([(1,), (2,), (1, 2), (0, 1, 2)]))
    drawn = data.draw(st.lists(named.filter(lambda name: name.naming in kinds), max_size=6))
    names = [name.path.rpartition("/")[2] for name in drawn] + [f"{start}7.manifest" for start in odd]
    parsed = [name for name in map(parse_manifest_name, names) if name is not None and name.naming]
    expected = max(parsed, key=lambda name: (name.version, name.naming), default=None)
    assert paths.newest_manifest(names) == expected


@pytest.mark.parametrize("version", [9, 10, 200])
def test_naming_scheme_2_wins_for_the_same_version(version: int) -> None:
    names = [paths.ManifestName(version, naming).path.rpartition("/")[2] for naming in (1, 2)]
    assert paths.newest_manifest(names) == paths.newest_manifest(names[::-1]) == paths.ManifestName(version, 2)


def test_transaction_files_are_recognised_by_name() -> None:
    transaction, uuid = UUID(int=0xA1B2C3 << 104 | 7), UUID(int=5)
    name = paths.transaction_data_file(transaction, uuid)
    path = paths.data_file(name)
    assert path.startswith(paths.transaction_data(transaction))
    assert not path.startswith(paths.transaction_data(UUID(int=0xA1B2C3 << 104 | 8)))
    stem = name.removesuffix(".lance")
    assert {paths.data_stem(p) for p in (name, path, f"{path}#12", paths.blob_file(name, 3))} == {stem}
    assert paths.is_transaction(paths.transaction_name(3, str(uuid)), str(uuid))
    assert not paths.is_transaction(paths.transaction_name(3, str(transaction)), str(uuid))
