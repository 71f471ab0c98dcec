"""The guarantees of the commit log: see `protocol_model`."""

from __future__ import annotations

from unit.groups.protocol_states import (
    CHANGE,
    FOREIGN,
    PUBLISHED,
    TAKEN_BACK,
    BrokenError,
    Entry,
    Mark,
    Process,
    Setup,
    State,
    content,
    foreign_in,
    is_of,
)


def check_read(setup: Setup, state: State, reader: Process, versions: tuple[int, ...]) -> None:
    """Check that a reader has read all of the groups up to its entry, and nothing of later ones (G3).

    It has also read all foreign versions that were there when it began (G7).
    """
    contents = [content(chain[:version]) for chain, version in zip(state.tables, versions, strict=True)]
    for table, there in enumerate(reader.there):
        if not foreign_in(state.tables[table][:there]) <= contents[table]:
            raise BrokenError("G7: a reader missed a foreign version")
    newest = reader.entry
    for number, entry in enumerate(state.log):
        tables = setup.groups[entry.group]
        seen = tuple(table for table in tables if (CHANGE, entry.group) in contents[table])
        if number > newest and seen:
            raise BrokenError(f"G3: a reader saw a later group in tables {seen}")
        expected = tables if entry.end & PUBLISHED else entry.kept
        if number <= newest and (expected is None or set(seen) != set(expected)):
            raise BrokenError(f"G3: a reader saw an earlier group in tables {seen} of {expected}")


def check_last(setup: Setup, state: State) -> None:
    """Check a state without processes."""
    groups = [entry.group for entry in state.log]
    if len(set(groups)) < len(groups):
        raise BrokenError("G2: a group was entered twice")
    for chain in state.tables:
        if not foreign_in(chain) <= content(chain):
            raise BrokenError("G5: a foreign version was lost")
    for entry in state.log:
        if entry.end == 0 or (entry.end & TAKEN_BACK and entry.kept is None):
            raise BrokenError("G6: a group is not finished")
        if entry.end == PUBLISHED | TAKEN_BACK:
            raise BrokenError("G1: a group has both outcomes")
        _check_entry(setup, state, entry)


def _check_entry(setup: Setup, state: State, entry: Entry) -> None:
    tables = setup.groups[entry.group]
    own = {table: [mark.kind for mark in state.tables[table] if is_of(mark, entry.group)] for table in tables}
    visible = tuple(table for table in tables if (CHANGE, entry.group) in content(state.tables[table]))
    if any(kinds.count(CHANGE) > 1 for kinds in own.values()):
        raise BrokenError("G2: a change was put twice")
    if any(CHANGE in kinds[1:] for kinds in own.values()):
        raise BrokenError("G2: a change was put after its table was taken back")
    told = tables if entry.end == PUBLISHED else entry.kept or ()
    unknown = {~table for table in told if table < 0}
    if set(visible) - unknown != set(told) & set(tables):
        raise BrokenError(f"G1: the changes of tables {visible} are visible instead of {told}")
    if entry.end == TAKEN_BACK and not setup.cleanups:
        _check_reason(setup, state, entry)


def _check_reason(setup: Setup, state: State, entry: Entry) -> None:
    tables = setup.groups[entry.group]
    conflicts, built_on = set(), set()
    for table, base in zip(tables, entry.bases, strict=True):
        chain = state.tables[table]
        foreign = [at for at, mark in enumerate(chain) if at >= base and mark.kind == FOREIGN]
        put = next((at for at, mark in enumerate(chain) if mark == Mark(CHANGE, entry.group)), len(chain))
        before = [chain[at].against | chain[at].disputed for at in foreign if at < put]
        if any(bits >> entry.group & 1 for bits in before) or (before and table in setup.strict):
            conflicts.add(table)
        if any(at > put for at in foreign):
            built_on.add(table)
    if not conflicts:
        raise BrokenError("G4: a group was taken back without a conflict")
    is_agreed = setup.disputes == (0,)
    if entry.kept and not (set(entry.kept) <= built_on and (conflicts - set(entry.kept) or not is_agreed)):
        raise BrokenError("G4: a group was taken back in part without two foreign versions")
