from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from lance_duck.cache import KeptBySize, LruCache


@dataclass
class Thing:
    nbytes: int


def by_size(limit: int) -> KeptBySize[Thing]:
    return KeptBySize(limit, lambda thing: thing.nbytes)


def test_the_last_things_used_are_kept_by_number() -> None:
    kept: LruCache[object] = LruCache(2)
    a, b = kept.get("a", object), kept.get("b", object)
    assert kept.get("a", object) is a
    kept.get("c", object)
    assert kept.get("a", object) is a
    assert kept.get("b", object) is not b


def test_the_last_things_used_are_kept_by_size() -> None:
    kept = by_size(10)
    for key in "abc":
        kept.get(key, lambda: Thing(4))
    assert "a" not in kept
    assert "b" in kept
    assert "c" in kept


def test_of_things_larger_than_the_limit_only_the_last_one_is_kept() -> None:
    kept = by_size(10)
    kept.get("a", lambda: Thing(50))
    large = kept.get("b", lambda: Thing(100))
    assert kept.get("b", lambda: Thing(1)) is large
    assert "a" not in kept


def test_a_large_thing_and_small_ones_do_not_push_each_other_out() -> None:
    kept = by_size(100)
    things = [kept.get(key, lambda size=size: Thing(size)) for key, size in [("small", 10), ("large", 300), ("s", 10)]]
    for _ in range(100):
        assert [kept.get(key, lambda: Thing(1)) for key in ("small", "large", "s")] == things
    assert kept.nbytes == 320
    kept.get("more", lambda: Thing(15))
    assert "small" not in kept
    assert "large" in kept


def test_things_that_grow_push_others_out() -> None:
    kept = by_size(10)
    a = kept.get("a", lambda: Thing(1))
    kept.get("b", lambda: Thing(5))
    a.nbytes = 100
    for _ in range(100):
        kept.get("a", lambda: Thing(1))
    assert "a" in kept
    assert "b" not in kept


def test_a_thing_is_made_once_by_many_threads() -> None:
    kept, barrier, made = by_size(10), threading.Barrier(8), []

    def make() -> Thing:
        made.append(1)
        return Thing(1)

    def ask(_: int) -> Thing:
        barrier.wait()
        return kept.get("a", make)

    with ThreadPoolExecutor(8) as pool:
        things = list(pool.map(ask, range(8)))
    assert made == [1]
    assert all(thing is things[0] for thing in things)


def test_what_cannot_be_made_is_tried_again() -> None:
    kept = by_size(10)

    def fail() -> Thing:
        raise ValueError("no such thing")

    for _ in range(2):
        with pytest.raises(ValueError, match="no such thing"):
            kept.get("a", fail)
    assert kept.get("a", lambda: Thing(3)).nbytes == 3


def test_a_dropped_thing_is_made_anew() -> None:
    kept = by_size(10)
    a = kept.get("a", lambda: Thing(1))
    kept.drop("a")
    kept.drop("b")
    assert kept.get("a", lambda: Thing(1)) is not a
