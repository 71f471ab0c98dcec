from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from lance_duck.cache import LruCache, SizedCache


@dataclass
class Thing:
    nbytes: int


def by_size(limit: int) -> SizedCache[Thing]:
    return SizedCache(limit, lambda thing: thing.nbytes, grows=True)


def test_the_most_recently_used_values_are_kept_up_to_a_count() -> None:
    kept: LruCache[object] = LruCache(2)
    a, b = kept.get("a", object), kept.get("b", object)
    assert kept.get("a", object) is a
    kept.get("c", object)
    assert kept.get("a", object) is a
    assert kept.get("b", object) is not b


def test_a_second_value_for_a_key_is_not_stored() -> None:
    cache: LruCache[str] = LruCache(2)
    assert cache.find("a") is None
    assert [cache.put("a", "one"), cache.put("a", "two"), cache.find("a")] == ["one", "one", "one"]


def test_recently_used_values_stay_longer() -> None:
    cache: LruCache[str] = LruCache(2)
    cache.put("a", "one")
    cache.put("b", "two")
    assert cache.find("a") == "one"
    cache.put("c", "three")
    assert [cache.find(key) for key in "abc"] == ["one", None, "three"]


def test_key_of_compares_by_identity() -> None:
    cache: LruCache[list[int]] = LruCache(2)
    value = cache.put("a", [1])
    assert cache.key_of(value) == "a"
    assert cache.key_of([1]) is None


def test_sizes_of_fixed_values_are_measured_once() -> None:
    cache: SizedCache[Thing] = SizedCache(10, lambda thing: thing.nbytes)
    thing = cache.get("a", lambda: Thing(4))
    cache.put("b", Thing(4))
    thing.nbytes = 100
    for _ in range(200):
        assert cache.find("a") is thing
    assert (cache.nbytes, len(cache)) == (8, 2)
    cache.put("c", Thing(4))
    assert (cache.nbytes, len(cache), cache.find("b")) == (8, 2, None)
    cache.drop("a")
    assert (cache.nbytes, len(cache)) == (4, 1)


def test_the_most_recently_used_values_are_kept_up_to_a_size() -> None:
    kept = by_size(10)
    for key in "abc":
        kept.get(key, lambda: Thing(4))
    assert "a" not in kept
    assert "b" in kept
    assert "c" in kept


def test_only_the_last_oversized_value_is_cached() -> None:
    kept = by_size(10)
    kept.get("a", lambda: Thing(50))
    large = kept.get("b", lambda: Thing(100))
    assert kept.get("b", lambda: Thing(1)) is large
    assert "a" not in kept


def test_a_large_value_does_not_evict_small_ones() -> None:
    kept = by_size(100)
    things = [kept.get(key, lambda size=size: Thing(size)) for key, size in [("small", 10), ("large", 300), ("s", 10)]]
    for _ in range(100):
        assert [kept.get(key, lambda: Thing(1)) for key in ("small", "large", "s")] == things
    assert kept.nbytes == 320
    kept.get("more", lambda: Thing(15))
    assert "small" not in kept
    assert "large" in kept


def test_growing_values_evict_others() -> None:
    kept = by_size(10)
    a = kept.get("a", lambda: Thing(1))
    kept.get("b", lambda: Thing(5))
    a.nbytes = 100
    for _ in range(100):
        kept.get("a", lambda: Thing(1))
    assert "a" in kept
    assert "b" not in kept


def test_concurrent_requests_create_a_value_once() -> None:
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


def test_a_failed_creation_is_retried() -> None:
    kept = by_size(10)

    def fail() -> Thing:
        raise ValueError("no such thing")

    for _ in range(2):
        with pytest.raises(ValueError, match="no such thing"):
            kept.get("a", fail)
    assert kept.get("a", lambda: Thing(3)).nbytes == 3


def test_a_dropped_value_is_created_again() -> None:
    kept = by_size(10)
    a = kept.get("a", lambda: Thing(1))
    kept.drop("a")
    kept.drop("b")
    assert kept.get("a", lambda: Thing(1)) is not a


def test_values_of_expired_keys_are_evicted() -> None:
    by_number: LruCache[Thing] = LruCache(8)
    sized = by_size(100)
    for key in range(6):
        by_number.put(key, Thing(10))
        sized.put(key, Thing(10))
    by_number.drop_where(lambda key: key % 2 == 0)
    sized.drop_where(lambda key: key % 2 == 0)
    assert [key for key in range(6) if by_number.find(key)] == [1, 3, 5]
    assert [key for key in range(6) if key in sized] == [1, 3, 5]
    assert sized.nbytes == 30


def test_all_values_are_found_or_none() -> None:
    cache: SizedCache[str] = SizedCache(12, len)
    cache.put("a", "four")
    cache.put("b", "more")
    assert cache.find_all(["b", "a", "b"]) == ["more", "four", "more"]
    assert cache.find_all([]) == []
    assert cache.find_all(["a", "missing"]) is None
    cache.find_all(["a"])
    cache.put("c", "last")
    cache.put("d", "next")
    assert [key in cache for key in "abcd"] == [True, False, True, True]
