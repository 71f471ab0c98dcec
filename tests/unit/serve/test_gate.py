"""Tokens, roles, slots, deadlines and remembered answers of a gate."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest

from lance_duck.errors import InvalidInputError, RetryableError
from lance_duck.serve.gate import process_memory
from lance_duck.serve.gate.admission import Admission
from lance_duck.serve.gate.gate import Gate
from lance_duck.serve.gate.refusals import (
    AbandonedError,
    BusyError,
    ForbiddenError,
    LimitError,
    UnauthorizedError,
)
from lance_duck.serve.gate.remembered import RememberedAnswers
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.gate.tokens import AccessToken, Caller, Role, read_tokens

READER = Caller("reader", Role.READ)
TOKENS = (AccessToken.of("reader", Role.READ, "secret"), AccessToken.of("writer", Role.WRITE, "other"))


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(ServeSettings(str(tmp_path)))
    yield gate
    gate.close()


def test_a_token_file_names_callers_and_roles(tmp_path: Path) -> None:
    digest = sha256(b"secret").hexdigest()
    file = tmp_path / "tokens"
    file.write_text(f"# the team\n\nana:write:{digest}  # her laptop\nbot:read:{digest.upper()}\n")
    assert [token.caller for token in read_tokens(str(file))] == [Caller("ana", Role.WRITE), Caller("bot", Role.READ)]


@pytest.mark.parametrize(
    "text", ["", "ana:write", "ana:owner:" + "0" * 64, "a:read:0", ("a:read:" + "0" * 64 + "\n") * 2]
)
def test_a_malformed_token_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokens").write_text(text)
    with pytest.raises(InvalidInputError, match="token"):
        read_tokens(str(tmp_path / "tokens"))


@pytest.mark.parametrize("token", [None, "", "Secret", "secret ", "\udcff"])
def test_an_unknown_token_is_refused(tmp_path: Path, token: str | None) -> None:
    gate = Gate(ServeSettings(str(tmp_path), tokens=TOKENS))
    assert gate.caller("secret") == READER
    with pytest.raises(UnauthorizedError):
        gate.caller(token)
    gate.close()


def test_only_a_writing_token_of_a_writing_server_may_change_tables(tmp_path: Path) -> None:
    gate = Gate(ServeSettings(str(tmp_path), tokens=TOKENS, write=True))
    gate.check_may_change(gate.caller("other"))
    with pytest.raises(ForbiddenError, match="reader: the token only reads"):
        gate.check_may_change(gate.caller("secret"))
    gate.close()
    gate = Gate(ServeSettings(str(tmp_path), tokens=TOKENS))
    with pytest.raises(ForbiddenError, match="start it with --write"):
        gate.check_may_change(gate.caller("other"))
    gate.close()


def test_a_server_for_other_machines_needs_a_token() -> None:
    with pytest.raises(InvalidInputError, match="needs a token"):
        ServeSettings("data", host="0.0.0.0")


def test_requests_beyond_the_slots_wait_and_requests_beyond_the_queue_are_refused() -> None:
    admission = Admission(1, 1, 60.0)
    waits = threading.Event()

    def wait() -> str:
        waits.set()
        with admission.slot():
            return "ran"

    with ThreadPoolExecutor(1) as pool, admission.slot():
        second = pool.submit(wait)
        waits.wait()
        while not admission.waiting:
            pass
        with pytest.raises(BusyError, match="too many requests wait"), admission.slot():
            pass
        assert not second.done()
        admission_is_busy = admission.running
    assert (admission_is_busy, second.result(), admission.running) == (1, "ran", 0)


def test_a_request_that_waits_too_long_is_refused() -> None:
    admission = Admission(1, 1, 0.01)
    with admission.slot():
        with pytest.raises(BusyError, match="no request ended in time"), admission.slot():
            pass
        assert (admission.running, admission.waiting) == (1, 0)


def test_a_waiting_request_leaves_the_queue_when_its_client_has_left() -> None:
    admission, gone = Admission(1, 2, 60.0), threading.Event()

    def wait(is_gone: Callable[[], bool]) -> str:
        with admission.slot(is_gone):
            return "ran"

    with ThreadPoolExecutor(2) as pool, ExitStack() as held:
        held.enter_context(admission.slot())
        leaving, staying = pool.submit(wait, gone.is_set), pool.submit(wait, lambda: False)
        while admission.waiting < 2:
            pass
        gone.set()
        admission.wake()
        with pytest.raises(AbandonedError, match="closed the connection"):
            leaving.result()
        assert (admission.waiting, staying.done()) == (1, False)
        held.close()
        assert staying.result() == "ran"


def test_a_closed_gate_refuses_waiting_requests_and_lets_running_ones_end() -> None:
    admission = Admission(1, 1, 60.0)
    with ThreadPoolExecutor(1) as pool, admission.slot():
        waiting = pool.submit(lambda: admission.slot().__enter__())
        while not admission.waiting:
            pass
        admission.close()
        with pytest.raises(BusyError, match="the server stops"):
            waiting.result()
        assert not admission.drained(0.0)
    assert admission.drained(0.0)


def test_a_request_waits_no_longer_than_its_client_grants(gate: Gate) -> None:
    with ExitStack() as held:
        for _ in range(gate.settings.max_statements):
            held.enter_context(gate.admission.slot())
        with pytest.raises(BusyError, match=r"no request ended in time: found 0.05 seconds"):
            gate.call(READER, timeout=0.05).__enter__()


def test_the_time_in_which_a_request_waits_counts(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]

    def wait_for_room() -> None:
        now[0] += 20

    monkeypatch.setattr(process_memory, "wait_for_room", wait_for_room)
    with monkeypatch.context() as clock:
        clock.setattr(time, "monotonic", lambda: now[0])
        with gate.call(READER, timeout=50) as call:
            assert (call.limit, call.seconds_left) == (50, 30)


def test_a_call_ends_at_its_deadline(gate: Gate) -> None:
    with pytest.raises(LimitError, match=r"at most 0.05 seconds"), gate.call(READER, timeout=0.05) as call:
        call.cursor().execute("SELECT count(*) FROM range(1000000000000)")


def test_a_cancelled_call_stops_its_statement_and_frees_its_slot(gate: Gate) -> None:
    def run() -> None:
        with gate.call(READER) as call:
            cursor = call.cursor()
            threading.Timer(0.05, call.cancel).start()
            cursor.execute("SELECT count(*) FROM range(1000000000000)")

    with pytest.raises(AbandonedError):
        run()
    assert gate.admission.running == 0
    with gate.call(READER) as call:
        assert call.cursor().execute("SELECT 1").fetchall() == [(1,)]


def test_a_statement_that_begins_after_the_cancellation_is_stopped(gate: Gate) -> None:
    def begin_late() -> None:
        with gate.call(READER) as call:
            cursor = call.cursor()
            call.cancel()
            cursor.execute("SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE hash(a, b) = 0")

    with pytest.raises(AbandonedError):
        begin_late()
    assert gate.admission.running == 0


def test_a_server_for_other_machines_needs_tls_or_consent(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="plain HTTP"):
        ServeSettings(str(tmp_path), "0.0.0.0", tokens=TOKENS)
    assert ServeSettings(str(tmp_path), "0.0.0.0", tokens=TOKENS, insecure=True)
    assert ServeSettings(str(tmp_path), "0.0.0.0", tokens=TOKENS, tls_cert="cert.pem")
    with pytest.raises(InvalidInputError, match="needs a certificate"):
        ServeSettings(str(tmp_path), tls_key="key.pem")


def test_a_conflict_is_reported_even_if_the_call_was_cancelled(gate: Gate) -> None:
    def run() -> None:
        with gate.call(READER) as call:
            call.cancel()
            raise RetryableError("newer version")

    with pytest.raises(RetryableError, match="newer"):
        run()


@pytest.mark.parametrize(("limits", "text"), [((2, 1000), "too many rows"), ((100, 8), "too large")])
def test_an_answer_beyond_a_limit_is_an_error(gate: Gate, limits: tuple[int, int], text: str) -> None:
    batch = pa.record_batch({"x": [1, 2, 3]})
    with gate.call(READER) as call, pytest.raises(LimitError, match=text):
        [*call.limited([batch], max_rows=limits[0], max_bytes=limits[1])]


def test_a_repeated_change_gets_the_first_answer() -> None:
    answers, runs = RememberedAnswers(), [0]

    def change() -> int:
        runs[0] += 1
        return runs[0]

    assert [answers.once("a", change), answers.once("a", change), answers.once("b", change)] == [1, 1, 2]
    assert [answers.once(None, change), answers.once(None, change)] == [3, 4]


def test_a_failed_change_runs_again() -> None:
    answers = RememberedAnswers()

    def fail() -> int:
        raise RetryableError("conflict")

    with pytest.raises(RetryableError):
        answers.once("a", fail)
    assert answers.once("a", lambda: 1) == 1


def test_a_repeated_change_waits_for_the_first_one() -> None:
    answers, begun, may_end = RememberedAnswers(), threading.Event(), threading.Event()

    def change() -> str:
        begun.set()
        may_end.wait()
        return "first"

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(answers.once, "a", change)
        begun.wait()
        second = pool.submit(answers.once, "a", lambda: "second")
        may_end.set()
        assert (first.result(), second.result()) == ("first", "first")
