"""A model of the commit log of `lance_duck.groups`: every order of the steps of several processes.

One step is one read or one put. `explore` visits every state that can be reached, and raises `BrokenError` with the
steps that lead to a broken guarantee.

A process forgets what it was once its group is in the log: writer, helper and opener then take the same steps. States
that differ only in the order of such processes are the same state.

A step that only learns a fact that cannot change any more, for example that a name is taken, is taken at once. It
changes nothing for others, so the other orders lead to the same states. `Setup.every_order` switches this off.

The guarantees, beside those of `check_read`:

    G1  published: each change is in its table, once. undone: no change is visible. partly: as `.undone` says
    G2  no change is put twice, or after its group or table was taken back
    G4  partly: only after a conflicting foreign version, and one that was built on a change
    G5  no foreign version is lost
    G6  every group is finished at the end, and no processes run in a circle
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product

from unit.groups.protocol_checks import check_last, check_read
from unit.groups.protocol_states import (
    CHANGE,
    FENCE,
    FOREIGN,
    HELPER,
    PUBLISHED,
    READER,
    TAKEN_BACK,
    UNDO,
    WATCHER,
    BrokenError,
    Cause,
    Entry,
    Log,
    Mark,
    Move,
    Process,
    Setup,
    State,
    Tables,
    is_of,
)


class Model:
    """The steps of all processes. The methods `head` to `look` are one read or one put each."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.rules = setup.rules
        self._marks = list(product(range(setup.tables), setup.conflicts, setup.disputes))
        self._steps: dict[str, Callable[[State, Process], list[Move]]] = {
            step.__name__: step
            for step in (
                *(self.head, self.end, self.undone, self.stage, self.enter),
                *(self.chain, self.guard, self.put, self.publish, self.abort),
                *(self.back, self.fence, self.undo, self.close, self.newest, self.look),
            )
        }

    def start(self) -> State:
        """Return the state before the first step."""
        setup = self.setup
        kinds = [HELPER] * setup.helpers + [READER] * setup.readers + [WATCHER] * setup.watchers
        processes = sorted(Process("head", kind) for kind in [*range(len(setup.groups)), *kinds])
        empty: Tables = ((),) * setup.tables
        return State(
            empty, (), tuple(processes), (0,) * setup.tables, setup.foreign, setup.crashes, setup.lost, setup.cleanups
        )

    def next_states(self, state: State) -> list[tuple[Cause, State]]:
        """Return the states that one step leads to."""
        is_eager = not (self.setup.every_order or self.setup.cleanups)
        found: list[tuple[Cause, State]] = []
        for at, process in enumerate(state.processes):
            others = state.processes[:at] + state.processes[at + 1 :]
            if at and process == state.processes[at - 1]:
                continue
            for move in self._steps[process.step](state, process):
                if move.is_lost and not state.lost:
                    continue
                after = others if move.process is None else tuple(sorted((*others, move.process)))
                lost = state.lost - move.is_lost
                new = state._replace(tables=move.tables, log=move.log, processes=after, lost=lost)
                cause = Cause(process.step, process)
                if is_eager and move.is_settled and move.process is not None:
                    return [(cause, new)]
                found.append((cause, new))
            if state.crashes:
                opened = tuple(sorted((*others, Process("head", HELPER))))
                crashed = state._replace(processes=opened, crashes=state.crashes - 1)
                found.append((Cause("crash", process), crashed))
        found.extend(self._foreign(state))
        return found

    def _foreign(self, state: State) -> Iterator[tuple[Cause, State]]:
        is_finished = all(entry.end == PUBLISHED or entry.kept is not None for entry in state.log)
        if state.cleanups and (is_finished or self.setup.cleans_unfinished):
            oldest = tuple(map(len, state.tables))
            yield Cause("cleanup"), state._replace(oldest=oldest, cleanups=state.cleanups - 1)
        if not state.foreign:
            return
        for table, against, disputed in self._marks:
            tables = _added(state.tables, table, Mark(FOREIGN, state.foreign, against, disputed))
            yield Cause(FOREIGN, None, table), state._replace(tables=tables, foreign=state.foreign - 1)

    # Steps that everybody takes first: find the newest entry, and finish it.

    def head(self, state: State, process: Process) -> list[Move]:
        """Read the number of the newest entry."""
        newest = len(state.log) - 1
        there = tuple(map(len, state.tables)) if process.group == READER else ()
        process = process._replace(entry=newest, at=0, target=0, seen=(), there=there)
        if newest < 0 or (process.group >= 0 and not self.rules.finish_first):
            return [_read(state, self._finished(process))]
        return [_read(state, process._replace(step="end"))]

    def end(self, state: State, process: Process) -> list[Move]:
        """Read `.end`."""
        end = state.log[process.entry].end
        if end & PUBLISHED:
            return [_read(state, self._finished(process), is_settled=self.rules.one_end)]
        if end & TAKEN_BACK:
            return [_read(state, process._replace(step="undone", seen=()), is_settled=self.rules.one_end)]
        return [_read(state, self._unfinished(process, "chain", 0))]

    def undone(self, state: State, process: Process) -> list[Move]:
        """Read `.undone`."""
        entry = state.log[process.entry]
        if entry.kept is not None:
            return [_read(state, self._finished(process), is_settled=True)]
        return [_read(state, self._unfinished(process, "back", len(entry.bases) - 1))]

    def _finished(self, process: Process) -> Process | None:
        if process.group == HELPER:
            return None
        fresh = process._replace(at=0, target=0, seen=())
        return fresh._replace(step="stage" if process.group >= 0 else self._first_read())

    def _unfinished(self, process: Process, step: str, at: int) -> Process | None:
        if process.group == WATCHER or (process.group == READER and not self.rules.finish_first):
            before = 1 if process.group == WATCHER else 0
            return self._finished(process._replace(entry=process.entry - before))
        return process._replace(step=step, at=at, target=0, seen=())

    # A writer.

    def stage(self, state: State, process: Process) -> list[Move]:
        """Read the newest version of one table, and rebase the change onto it."""
        tables = self.setup.groups[process.group]
        chain = state.tables[tables[process.at]]
        if any(mark.against >> process.group & 1 for mark in chain):
            return [_read(state, None)]
        seen = (*process.seen, len(chain))
        if len(seen) < len(tables):
            return [_read(state, process._replace(at=process.at + 1, seen=seen))]
        return [_read(state, process._replace(step="enter", at=0, seen=seen))]

    def enter(self, state: State, process: Process) -> list[Move]:
        """Put the next entry. From here on, others may finish the group."""
        number = process.entry + 1
        entered = Process("end", HELPER, number)
        retry = process._replace(step="head", entry=-1, seen=())
        if not self.rules.stage_after_finish:
            retry = process._replace(entry=number)
        own = entered if self.rules.own_entry else retry
        if len(state.log) == number:
            return _put(state, entered, own, state.tables, (*state.log, Entry(process.group, process.seen)))
        is_own = state.log[number].group == process.group
        return [_read(state, own if is_own else retry, is_settled=True)]

    # A helper that publishes.

    def chain(self, state: State, process: Process) -> list[Move]:
        """Read the versions of one table after the base, and decide what to do."""
        entry = state.log[process.entry]
        group, base = entry.group, entry.bases[process.at]
        table = self.setup.groups[group][process.at]
        length = len(state.tables[table])
        oldest = state.oldest[table]
        after = state.tables[table][max(base, oldest - 1) :]
        if any(mark.kind == CHANGE and mark.who == group for mark in after):
            return [_read(state, self._published(state, process), is_settled=True)]
        if self.rules.fences_end and any(mark.kind in (FENCE, UNDO) and mark.who == group for mark in after):
            return [_read(state, process._replace(step="end", at=0), is_settled=True)]
        if self.rules.gaps and oldest > base + 1:
            return [_read(state, process._replace(step="guard", target=0))]
        is_conflict = length > base if table in self.setup.strict else any(mark.against >> group & 1 for mark in after)
        abort = _read(state, process._replace(step="abort"), is_settled=is_conflict)
        if is_conflict:
            return [abort]
        step = "guard" if length > base and self.rules.guard else "put"
        put = _read(state, process._replace(step=step, target=length + 1))
        return [put, abort] if any(mark.disputed >> group & 1 for mark in after) else [put]

    def guard(self, state: State, process: Process) -> list[Move]:
        """Read `.end` again before a put onto newer versions."""
        if state.log[process.entry].end:
            return [_read(state, process._replace(step="end", at=0, target=0), is_settled=True)]
        return [_read(state, process._replace(step="put" if process.target else "abort"))]

    def put(self, state: State, process: Process) -> list[Move]:
        """Put the change."""
        entry = state.log[process.entry]
        table = self.setup.groups[entry.group][process.at]
        retry = process._replace(step="chain", target=0)
        if self.rules.conditional_put and len(state.tables[table]) + 1 != process.target:
            return [_read(state, retry, is_settled=True)]
        if entry.end & TAKEN_BACK and self.setup.disputes == (0,) and not self.setup.cleanups:
            raise BrokenError("G2: a change was put after .end said undo")
        tables = _added(state.tables, table, Mark(CHANGE, entry.group))
        return _put(state, self._published(state, process), retry, tables, state.log)

    def _published(self, state: State, process: Process) -> Process:
        if process.at + 1 < len(state.log[process.entry].bases):
            return process._replace(step="chain", at=process.at + 1, target=0)
        return process._replace(step="publish", at=0, target=0)

    def publish(self, state: State, process: Process) -> list[Move]:
        """Put `.end` with the outcome published."""
        return self._put_end(state, process, PUBLISHED, self._finished(process))

    def abort(self, state: State, process: Process) -> list[Move]:
        """Put `.end` with the outcome undo."""
        last = len(state.log[process.entry].bases) - 1
        return self._put_end(state, process, TAKEN_BACK, process._replace(step="back", at=last, target=0, seen=()))

    def _put_end(self, state: State, process: Process, outcome: int, won: Process | None) -> list[Move]:
        entry = state.log[process.entry]
        taken = process._replace(step="end", at=0, target=0)
        if entry.end and (self.rules.one_end or entry.end & outcome):
            return [_read(state, taken, is_settled=True)]
        log = _changed(state.log, process.entry, entry._replace(end=entry.end | outcome))
        return _put(state, won, taken, state.tables, log)

    # A helper that takes back.

    def back(self, state: State, process: Process) -> list[Move]:
        """Read the versions of one table after the base, and decide how to take the change back."""
        entry = state.log[process.entry]
        group, base = entry.group, entry.bases[process.at]
        table = self.setup.groups[group][process.at]
        chain, oldest = state.tables[table], state.oldest[table]
        start = max(base, oldest - 1)
        own = {mark.kind: at for at, mark in enumerate(chain[start:], start + 1) if is_of(mark, group)}
        is_unknown = CHANGE not in own and UNDO not in own and oldest > base + 1
        marked = process._replace(seen=(*process.seen, ~table)) if is_unknown else process
        if FENCE in own or UNDO in own:
            return [_read(state, self._taken_back(marked), is_settled=True)]
        target = len(chain) + 1
        if CHANGE not in own:
            if not self.rules.fences:
                return [_read(state, self._taken_back(marked))]
            return [_read(state, marked._replace(step="fence", target=target))]
        is_newest = own[CHANGE] == len(chain)
        if (is_newest and oldest < len(chain)) or not self.rules.undo_newest_only:
            return [_read(state, process._replace(step="undo", target=target))]
        kept = process._replace(seen=(*process.seen, ~table if is_newest else table))
        return [_read(state, self._taken_back(kept), is_settled=True)]

    def fence(self, state: State, process: Process) -> list[Move]:
        """Put a fence."""
        return self._put_back(state, process, FENCE, 0)

    def undo(self, state: State, process: Process) -> list[Move]:
        """Put the content of the version before the change."""
        entry = state.log[process.entry]
        chain = state.tables[self.setup.groups[entry.group][process.at]]
        return self._put_back(state, process, UNDO, chain.index(Mark(CHANGE, entry.group)))

    def _put_back(self, state: State, process: Process, kind: str, restored: int) -> list[Move]:
        group = state.log[process.entry].group
        table = self.setup.groups[group][process.at]
        retry = process._replace(step="back", target=0, seen=tuple(each for each in process.seen if each != ~table))
        if self.rules.conditional_put and len(state.tables[table]) + 1 != process.target:
            return [_read(state, retry, is_settled=True)]
        tables = _added(state.tables, table, Mark(kind, group, restored=restored))
        return _put(state, self._taken_back(process), retry, tables, state.log)

    def _taken_back(self, process: Process) -> Process:
        if process.at:
            return process._replace(step="back", at=process.at - 1, target=0)
        return process._replace(step="close", target=0)

    def close(self, state: State, process: Process) -> list[Move]:
        """Put `.undone`."""
        entry = state.log[process.entry]
        if entry.kept is not None:
            return [_read(state, self._finished(process), is_settled=True)]
        log = _changed(state.log, process.entry, entry._replace(kept=tuple(sorted(process.seen))))
        return _put(state, self._finished(process), self._finished(process), state.tables, log)

    # A reader. `entry` is the newest entry that it sees.

    def _first_read(self) -> str:
        return "newest" if self.rules.table_before_log else "look"

    def newest(self, state: State, process: Process) -> list[Move]:
        """Read the newest version of one table."""
        newest = len(state.tables[process.at])
        if self.rules.table_before_log:
            return [_read(state, process._replace(step="look", target=newest))]
        return [_read(state, self._has_read(state, process, newest if process.target < 0 else process.target))]

    def look(self, state: State, process: Process) -> list[Move]:
        """Look at the log for newer entries of one table."""
        tables = [self.setup.groups[entry.group] for entry in state.log]
        newer = [
            (number, entry.bases[tables[number].index(process.at)])
            for number, entry in enumerate(state.log)
            if number > process.entry and process.at in tables[number]
        ]
        found = newer[0 if self.rules.first_entry else -1] if newer else None
        if not self.rules.table_before_log:
            return [_read(state, process._replace(step="newest", target=-1 if found is None else found[1]))]
        version = process.target
        if found is not None and self.rules.before_group:
            group = state.log[found[0]].group
            chain = state.tables[process.at][:version]
            own = (at for at, mark in enumerate(chain) if mark.who == group and mark.kind != FOREIGN)
            version = next(own, version)
        elif found is not None:
            version = found[1]
        after = self._has_read(state, process, version)
        return [_read(state, after, is_settled=found is not None and self.rules.first_entry)]

    def _has_read(self, state: State, process: Process, version: int) -> Process | None:
        seen = (*process.seen, version)
        if len(seen) < self.setup.tables:
            return process._replace(step=self._first_read(), at=len(seen), target=0, seen=seen)
        check_read(self.setup, state, process, seen)
        return None


def _read(state: State, process: Process | None, *, is_settled: bool = False) -> Move:
    return Move(process, state.tables, state.log, is_settled)


def _put(state: State, won: Process | None, taken: Process | None, tables: Tables, log: Log) -> list[Move]:
    moves = [Move(won, tables, log)]
    if state.lost:
        moves.append(Move(taken, tables, log, is_lost=True))
    return moves


def _added(tables: Tables, table: int, mark: Mark) -> Tables:
    return (*tables[:table], (*tables[table], mark), *tables[table + 1 :])


def _changed(log: Log, number: int, entry: Entry) -> Log:
    return (*log[:number], entry, *log[number + 1 :])


@dataclass
class Explored:
    """What `explore` has found: the number of states, and tables and log of all states without processes."""

    states: int = 0
    last: set[tuple[Tables, Log]] = field(default_factory=set)

    @property
    def outcomes(self) -> set[str]:
        """How groups have ended: published, undone or partly."""
        return {_outcome(entry) for _, log in self.last for entry in log}


def _outcome(entry: Entry) -> str:
    if entry.end == PUBLISHED:
        return "published"
    return "partly" if entry.kept else "undone"


def explore(setup: Setup) -> Explored:
    """Visit every state.

    Raises:
        BrokenError: A guarantee does not hold.
    """
    model = Model(setup)
    found = Explored()
    is_open: dict[State, bool] = {}
    path: list[tuple[Cause, State, Iterator[tuple[Cause, State]]]] = []

    def enter(cause: Cause, state: State) -> None:
        if not state.processes:
            check_last(setup, state)
            found.last.add((state.tables, state.log))
        is_open[state] = True
        path.append((cause, state, iter(model.next_states(state))))

    cause = Cause("start")
    try:
        enter(cause, model.start())
        while path:
            step = next(path[-1][2], None)
            if step is None:
                is_open[path.pop()[1]] = False
                continue
            cause, state = step
            if state not in is_open:
                enter(cause, state)
            elif is_open[state]:
                raise BrokenError("G6: the processes run in a circle")
    except BrokenError as error:
        steps = [each for each, _, _ in path] + [cause]
        raise BrokenError(error.guarantee, tuple(map(str, steps))) from None
    found.states = len(is_open)
    return found
