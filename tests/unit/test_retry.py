from __future__ import annotations

import pytest

from lance_duck.retry import RetryPolicy


def test_the_result_of_the_first_successful_attempt_is_returned() -> None:
    numbers: list[int] = []

    def attempt(number: int) -> str:
        numbers.append(number)
        if number < 2:
            raise KeyError(number)
        return f"attempt {number}"

    assert RetryPolicy(5, first_wait=0).run(attempt, KeyError) == "attempt 2"
    assert numbers == [0, 1, 2]


@pytest.mark.parametrize(
    ("policy", "errors", "count"),
    [
        (RetryPolicy(3, first_wait=0), [KeyError(), IndexError(), ValueError(), KeyError()], 3),
        (RetryPolicy(2, first_wait=0), [KeyError(), KeyError(), IndexError(), ValueError()], 3),
        (RetryPolicy(0), [KeyError(), ValueError()], 1),
        (RetryPolicy(9, timeout=0.0), [KeyError(), ValueError()], 1),
    ],
)
def test_retries_stop_at_the_policy_limit_and_on_other_errors(
    policy: RetryPolicy, errors: list[Exception], count: int
) -> None:
    numbers: list[int] = []

    def attempt(number: int) -> None:
        numbers.append(number)
        raise errors[number]

    with pytest.raises(type(errors[count - 1])) as caught:
        policy.run(attempt, (KeyError, IndexError))
    assert caught.value is errors[count - 1]
    assert numbers == list(range(count))
