from __future__ import annotations

import pickle

import pytest

from lance_duck import errors

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.LanceDuckError)]


def test_a_message_has_location_problem_expectation_and_remedy() -> None:
    error = errors.CorruptError(
        "wrong magic", where="footer of data/0.lance", expected=b"LANC", found=b"PAR1", remedy="is this a Parquet file?"
    )
    assert str(error) == "footer of data/0.lance: wrong magic: expected b'LANC', found b'PAR1'; is this a Parquet file?"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "no such version"),
        ({"where": "t.lance"}, "t.lance: no such version"),
        ({"found": 0}, "no such version: found 0"),
        ({"expected": ""}, "no such version: expected "),
        ({"remedy": "see versions()"}, "no such version; see versions()"),
    ],
)
def test_missing_message_parts_are_omitted(parts: dict[str, object], message: str) -> None:
    assert str(errors.NotFoundError("no such version", **parts)) == message  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_class_shows_its_message_and_can_be_pickled(kind: type[errors.LanceDuckError]) -> None:
    error = kind("what", where="where", expected=1, found=2, remedy="remedy")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error) == "where: what: expected 1, found 2; remedy"


@pytest.mark.parametrize(
    ("kind", "parents"),
    [
        (errors.NotFoundError, (FileNotFoundError, ValueError)),
        (errors.AlreadyExistsError, (FileExistsError,)),
        (errors.IndexNotFoundError, (errors.NotFoundError, KeyError, RuntimeError)),
        (errors.IndexExistsError, (errors.AlreadyExistsError, RuntimeError)),
        (errors.DataMismatchError, (errors.InvalidInputError, OSError)),
        (errors.DuplicateKeyError, (errors.DataMismatchError,)),
        (errors.UnknownColumnError, (errors.InvalidInputError, KeyError)),
        (errors.WrongTypeError, (errors.InvalidInputError, TypeError)),
        (errors.ArrayLimitError, (errors.UnsupportedError, ValueError)),
        (errors.NotIndexableError, (errors.UnsupportedError, TypeError, NotImplementedError)),
        (errors.InvalidInputError, (ValueError,)),
        (errors.UnsupportedError, (errors.FormatError, ValueError)),
        (errors.CorruptError, (errors.FormatError, OSError)),
        (errors.RetryableError, (errors.CommitConflictError, OSError)),
        (errors.IncompatibleError, (errors.CommitConflictError, OSError)),
        (errors.StoreError, (OSError,)),
        (errors.ForkedError, (RuntimeError,)),
        (errors.JobError, (RuntimeError,)),
        (errors.InternalError, (RuntimeError,)),
    ],
)
def test_errors_inherit_from_the_matching_builtin_exceptions(kind: type[Exception], parents: tuple[type, ...]) -> None:
    assert issubclass(kind, (errors.LanceDuckError, *parents)[0])
    assert all(issubclass(kind, parent) for parent in parents)


def test_every_public_class_is_in_the_error_tree() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    assert {value for value in classes if value.__module__ == errors.__name__} == {
        *(*KINDS, errors.DerivedDataWarning, errors.IndexWarning, errors.MemWalWarning, errors.TableWarning)
    }
