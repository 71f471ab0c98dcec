from __future__ import annotations

import pyarrow as pa
import pytest
from unit.commit.samples import OPERATIONS

from lance_duck.commit.committer import new_transaction
from lance_duck.commit.conflicts import MATRIX, Verdict, check_conflict, judge
from lance_duck.commit.footprint import Footprint
from lance_duck.commit.key_filter import key_filter
from lance_duck.commit.operations import KeyExistenceFilter, Operation, Update
from lance_duck.errors import IncompatibleError, RetryableError
from lance_duck.wire.pb import transaction_pb2

# Rows: the new commit. Columns, in the same order: the earlier commit after the version read.
MEASURED = """
Append                 . . . . . . . X . . . . R R X . . . . .
Delete f0              . R . R R . R X . . R . R . X R . . . .
Delete f1              . . R . . R . X . . . R R . X . R . . .
Delete frag0 whole     . R . R R . R X . . R . R . X R . . . .
UpdateRows f0          . R . R R . R X . . R . R R X R . . . .
UpdateRows f1          . . R . . R . X . . . R R R X . R . . .
UpdateCols(b) f0       . R . R R . R X . . R . R R X R . . . .
Overwrite              . . . . . . . R . . . . . . . . . . . .
CreateIndex a          . . . . . . . X . . R . . . X . . . . .
CreateIndex b          . . . . . . . X . . R . . . X R R . . .
Rewrite f0             . R . R R . R X R R R . R . X R . . . .
Rewrite f1             . . R . . R . X . . . R R . X . R . . .
Merge(addcol)          R R R R R R R X . . R R R X X R R . . R
Project(drop c)        R . . . R R R X . . . . R R X R R . . .
Restore                . . . . . . . . . . . . . . . . . . . X
DataRepl b f0          . . . X R . R X . R R . R R X R . . . .
DataRepl b f1          . . . . . R . X . R . R R R X . R . . .
UpdateConfig k1        . . . . . . . . . . . . . . . . . X . .
UpdateConfig k2        . . . . . . . . . . . . . . . . . . X .
UpdateConfig schema_md . . . . . . . X . . . . R . X . . . . X
"""
# Measured with different index names; equal names are below.
SAME_INDEX = {("CreateIndex a", "CreateIndex a"), ("CreateIndex b", "CreateIndex b")}

MORE = """
Append                          | Merge of nullable               | .
Append                          | Project that keeps              | .
Append                          | Overwrite with k1               | X
Append                          | ReserveFragments                | .
Append                          | UpdateBases                     | .
Delete f0                       | Project that keeps              | .
UpdateRows f0                   | Project that keeps              | .
DataRepl b f0                   | Project that keeps              | .
Merge of nullable               | Append                          | R
Merge of nullable               | Project that keeps              | X
Project that keeps              | Append                          | .
Project that keeps              | UpdateRows f0                   | .
Project that keeps              | Append of c                     | R
Append of c                     | Project that keeps              | R
Append of a and c               | Project that keeps              | .
Project that keeps              | DataRepl b f0                   | .
Project that keeps              | Project that keeps              | R
UpdateConfig k1                 | UpdateConfig without k1         | X
UpdateConfig without k1         | UpdateConfig k1                 | X
UpdateConfig without k1         | UpdateConfig without k1         | .
UpdateConfig table_md           | UpdateConfig table_md           | X
UpdateConfig table_md           | UpdateConfig schema_md          | .
UpdateConfig field_md a         | UpdateConfig field_md a         | X
UpdateConfig field_md a         | UpdateConfig field_md b         | .
UpdateConfig field_md a         | UpdateConfig schema_md          | .
UpdateConfig field_md a         | Merge(addcol)                   | R
UpdateConfig field_md a         | Project(drop c)                 | .
UpdateConfig field_md a         | Overwrite                       | X
UpdateConfig field_md a         | Restore                         | X
UpdateConfig k1                 | Overwrite with k1               | X
UpdateConfig k2                 | Overwrite with k1               | .
Overwrite with k1               | UpdateConfig k1                 | X
Overwrite with k1               | Overwrite with k1               | X
Restore                         | UpdateConfig field_md a         | X
Merge(addcol)                   | UpdateConfig field_md b         | R
ReserveFragments                | Overwrite                       | X
ReserveFragments                | Restore                         | X
ReserveFragments                | ReserveFragments                | .
UpdateBases                     | UpdateBases                     | X
UpdateBases                     | Overwrite                       | .
CreateIndex a, coverage unknown | Rewrite f1                      | R
Rewrite f1                      | CreateIndex a, coverage unknown | R
CreateIndex a                   | CreateIndex a                   | R
DataOverlay b f0                | Append                          | .
DataOverlay b f0                | Delete f0                       | .
DataOverlay b f0                | Delete frag0 whole              | R
DataOverlay b f0                | UpdateRows f0                   | .
DataOverlay b f0                | UpdateCols(b) f0                | .
DataOverlay b f0                | DataOverlay b f0                | .
DataOverlay b f0                | DataRepl b f0                   | .
DataOverlay b f0                | CreateIndex b                   | .
DataOverlay b f0                | Rewrite f0                      | R
DataOverlay b f0                | Rewrite f1                      | .
DataOverlay b f0                | Merge(addcol)                   | R
DataOverlay b f0                | Project(drop c)                 | R
DataOverlay b f0                | Project that keeps              | .
DataOverlay b f0                | Overwrite                       | X
DataOverlay b f0                | Restore                         | X
Delete f0                       | DataOverlay b f0                | R
Delete f1                       | DataOverlay b f0                | .
UpdateRows f0                   | DataOverlay b f0                | R
CreateIndex b                   | DataOverlay b f0                | .
Rewrite f0                      | DataOverlay b f0                | R
Rewrite f1                      | DataOverlay b f0                | .
DataRepl b f0                   | DataOverlay b f0                | R
Merge(addcol)                   | DataOverlay b f1                | R
Project(drop c)                 | DataOverlay b f0                | R
Project that keeps              | DataOverlay b f0                | .
"""

SIGNS = {".": Verdict.REBASE, "R": Verdict.RETRY, "X": Verdict.INCOMPATIBLE}


def change(name: str, *, rows_known: bool = False) -> Footprint:
    return Footprint(new_transaction(1, OPERATIONS[name], None), has_affected_rows=rows_known)


def measured() -> list[tuple[str, str, Verdict]]:
    lines = [line.rsplit(maxsplit=20) for line in MEASURED.strip().splitlines()]
    names = [line[0] for line in lines]
    cells = [(line[0], theirs, sign) for line in lines for theirs, sign in zip(names, line[1:], strict=True)]
    return [(ours, theirs, SIGNS[sign]) for ours, theirs, sign in cells if (ours, theirs) not in SAME_INDEX]


def more() -> list[tuple[str, str, Verdict]]:
    cells = [[part.strip() for part in line.split("|")] for line in MORE.strip().splitlines()]
    return [(ours, theirs, SIGNS[sign]) for ours, theirs, sign in cells]


@pytest.mark.parametrize(("ours", "theirs", "verdict"), measured())
def test_conflicts_between_operations_follow_the_format(ours: str, theirs: str, verdict: Verdict) -> None:
    assert judge(change(ours), change(theirs)) is verdict


@pytest.mark.parametrize(("ours", "theirs", "verdict"), more())
def test_conflicts_depend_on_fragments_and_fields(ours: str, theirs: str, verdict: Verdict) -> None:
    assert judge(change(ours), change(theirs)) is verdict


@pytest.mark.parametrize("ours", ["Delete f0", "UpdateRows f0"])
@pytest.mark.parametrize("theirs", ["Delete f0", "UpdateRows f0", "Delete frag0 whole"])
def test_changes_of_one_fragment_are_rebased_if_their_rows_are_known(ours: str, theirs: str) -> None:
    assert judge(change(ours, rows_known=True), change(theirs)) is Verdict.REBASE


@pytest.mark.parametrize("ours", ["Delete f0", "UpdateRows f0"])
def test_in_place_updates_of_the_same_fragment_force_a_retry(ours: str) -> None:
    assert judge(change(ours, rows_known=True), change("UpdateCols(b) f0")) is Verdict.RETRY
    assert judge(change(ours.replace("f0", "f1"), rows_known=True), change("UpdateCols(b) f0")) is Verdict.REBASE


def test_every_operation_has_a_conflict_rule() -> None:
    assert set(MATRIX) == {kind.__name__ for kind in Operation.__subclasses__()}


@pytest.mark.parametrize("ours", OPERATIONS)
def test_unknown_operations_always_conflict(ours: str) -> None:
    unknown = transaction_pb2.Transaction.FromString(bytes([0x8A, 0x08, 0]))
    assert judge(change(ours), Footprint(unknown)) is Verdict.INCOMPATIBLE
    with pytest.raises(RetryableError, match="its transaction file is missing"):
        check_conflict(change(ours), None, 5, "t")


def inserts(*keys: int, fields: tuple[int, ...] = (0,)) -> Footprint:
    found: KeyExistenceFilter | None = key_filter(fields, [pa.array(keys)])
    return Footprint(new_transaction(1, Update(inserted_rows=found), None))


def test_inserts_of_the_same_key_are_retried() -> None:
    assert judge(inserts(1, 2), inserts(2, 3)) is Verdict.RETRY
    assert judge(inserts(1, 2), inserts(3, 4)) is Verdict.REBASE
    assert judge(inserts(1, 2), inserts(3, 4, fields=(1,))) is Verdict.RETRY


def test_inserts_by_key_are_retried_if_the_other_keys_are_unknown() -> None:
    assert judge(inserts(1), change("Append")) is Verdict.RETRY
    assert judge(inserts(1), change("UpdateRows f0")) is Verdict.RETRY
    assert judge(change("Append"), inserts(1)) is Verdict.REBASE
    assert judge(change("UpdateRows f0"), inserts(1)) is Verdict.REBASE


def test_conflict_errors_name_the_earlier_commit() -> None:
    theirs = change("Delete f0")
    who = rf"found Delete {theirs.transaction.uuid} at version 7"
    with pytest.raises(RetryableError, match=who):
        check_conflict(change("Delete f0"), theirs, 7, "t")
    with pytest.raises(IncompatibleError, match=r"Append: found Restore .* at version 8"):
        check_conflict(change("Append"), change("Restore"), 8, "t")
