"""The eight TPC-H tables at any scale, as Arrow tables.

They follow the column rules in section 4.2.3 of the specification: row counts, keys, value ranges and selectivities.
The vocabulary and the random numbers differ, and answers therefore differ from published ones. One order in 4,096 is
large, which gives query 18 rows at every scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]

START = np.datetime64("1992-01-01", "D").astype(np.int64)
LAST_ORDER = np.datetime64("1998-08-02", "D").astype(np.int64)
CURRENT = np.datetime64("1995-06-17", "D").astype(np.int64)

REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
NATIONS = [
    *(("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3)),
    *(("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4)),
    *(("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3)),
    *(("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1)),
]
COLOURS = (
    "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse "
    "chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest "
    "frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light "
    "lime linen magenta maroon medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale "
    "papaya peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky "
    "slate smoke snow spring steel tan thistle tomato turquoise violet wheat white yellow"
)
TYPES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
CONTAINERS = (("SM", "LG", "MED", "JUMBO", "WRAP"), ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"))
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
INSTRUCTIONS = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]
MODES = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]
WORDS = (
    "furiously carefully slyly quickly blithely ironic regular final express special pending bold even silent "
    "unusual requests deposits accounts packages instructions foxes theodolites pinto beans platelets ideas "
    "dependencies excuses asymptotes courts dolphins sleep nag haggle wake cajole detect integrate boost use affix "
    "about above according to across after against along among around the of are was must will even"
)
LETTERS = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,0123456789"


def tpch(scale: float, seed: int = 0) -> dict[str, pa.Table]:
    """Return the eight tables at `scale` (1.0 is 6 million lines); the same seed gives the same tables."""
    rng = np.random.default_rng(seed)
    suppliers, parts = max(20, int(scale * 10_000)), max(100, int(scale * 200_000))
    customers = max(60, int(scale * 150_000))
    vocabulary = WORDS.split()
    words = _Pool(rng, " ".join(vocabulary[i] for i in rng.integers(0, len(vocabulary), 60_000)))
    letters = _Pool(rng, "".join(LETTERS[i] for i in rng.integers(0, len(LETTERS), 100_000)))
    orders, lines = _orders_and_lines(rng, words, customers * 10, customers, parts, suppliers)
    return {
        "region": _region(words),
        "nation": _nation(words),
        "supplier": _supplier(rng, words, letters, suppliers),
        "part": _part(rng, words, parts),
        "partsupp": _partsupp(rng, words, parts, suppliers),
        "customer": _customer(rng, words, letters, customers),
        "orders": orders,
        "lineitem": lines,
    }


class _Pool:
    """Random substrings of one text."""

    def __init__(self, rng: np.random.Generator, text: str) -> None:
        self._rng = rng
        self._text = np.frombuffer(text.encode(), np.uint8)

    def take(self, count: int, shortest: int, longest: int) -> pa.Array:
        """Return `count` strings of `shortest` to `longest` characters."""
        parts = [self._take(min(500_000, count - at), shortest, longest) for at in range(0, count, 500_000)]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.string())

    def _take(self, count: int, shortest: int, longest: int) -> pa.Array:
        lengths = self._rng.integers(shortest, longest + 1, count)
        starts = self._rng.integers(0, len(self._text) - longest, count)
        offsets = np.zeros(count + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        places = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(self._text[places]))


def _region(words: _Pool) -> pa.Table:
    return pa.table(
        {"r_regionkey": pa.array(range(5), pa.int32()), "r_name": REGIONS, "r_comment": words.take(5, 31, 115)}
    )


def _nation(words: _Pool) -> pa.Table:
    return pa.table(
        {
            "n_nationkey": pa.array(range(25), pa.int32()),
            "n_name": [name for name, _ in NATIONS],
            "n_regionkey": pa.array([region for _, region in NATIONS], pa.int32()),
            "n_comment": words.take(25, 31, 114),
        }
    )


def _supplier(rng: np.random.Generator, words: _Pool, letters: _Pool, count: int) -> pa.Table:
    key, nation = np.arange(1, count + 1), rng.integers(0, 25, count)
    comments = words.take(count, 25, 100).to_pylist()
    for i in rng.permutation(count)[: max(1, count // 2000)]:
        comments[i] = f"{comments[i][:8]}Customer {comments[i][8:14]}Complaints"
    return pa.table(
        {
            "s_suppkey": key,
            "s_name": _numbered("Supplier#", key),
            "s_address": letters.take(count, 10, 40),
            "s_nationkey": nation.astype(np.int32),
            "s_phone": _phone(rng, nation),
            "s_acctbal": money(rng.integers(-99_999, 1_000_000, count)),
            "s_comment": comments,
        }
    )


def _part(rng: np.random.Generator, words: _Pool, count: int) -> pa.Table:
    key = np.arange(1, count + 1)
    colours = COLOURS.split()
    names = [_pick(colours, rng.integers(0, len(colours), count)) for _ in range(5)]
    maker, brand = rng.integers(1, 6, count), rng.integers(1, 6, count)
    return pa.table(
        {
            "p_partkey": key,
            "p_name": pc.binary_join_element_wise(*names, " "),
            "p_mfgr": _joined("Manufacturer#", maker),
            "p_brand": _joined("Brand#", maker * 10 + brand),
            "p_type": pc.binary_join_element_wise(*(_pick(t, rng.integers(0, len(t), count)) for t in TYPES), " "),
            "p_size": rng.integers(1, 51, count).astype(np.int32),
            "p_container": pc.binary_join_element_wise(
                *(_pick(c, rng.integers(0, len(c), count)) for c in CONTAINERS), " "
            ),
            "p_retailprice": money(_retail_price(key)),
            "p_comment": words.take(count, 5, 22),
        }
    )


def _partsupp(rng: np.random.Generator, words: _Pool, parts: int, suppliers: int) -> pa.Table:
    part, place = np.repeat(np.arange(1, parts + 1), 4), np.tile(np.arange(4), parts)
    return pa.table(
        {
            "ps_partkey": part,
            "ps_suppkey": _supplier_of(part, place, suppliers),
            "ps_availqty": rng.integers(1, 10_000, parts * 4).astype(np.int32),
            "ps_supplycost": money(rng.integers(100, 100_001, parts * 4)),
            "ps_comment": words.take(parts * 4, 49, 198),
        }
    )


def _customer(rng: np.random.Generator, words: _Pool, letters: _Pool, count: int) -> pa.Table:
    key, nation = np.arange(1, count + 1), rng.integers(0, 25, count)
    return pa.table(
        {
            "c_custkey": key,
            "c_name": _numbered("Customer#", key),
            "c_address": letters.take(count, 10, 40),
            "c_nationkey": nation.astype(np.int32),
            "c_phone": _phone(rng, nation),
            "c_acctbal": money(rng.integers(-99_999, 1_000_000, count)),
            "c_mktsegment": _pick(SEGMENTS, rng.integers(0, 5, count)),
            "c_comment": words.take(count, 29, 116),
        }
    )


def _orders_and_lines(
    rng: np.random.Generator, words: _Pool, count: int, customers: int, parts: int, suppliers: int
) -> tuple[pa.Table, pa.Table]:
    number = np.arange(count)
    key = number // 8 * 32 + number % 8 + 1
    date = rng.integers(START, LAST_ORDER + 1, count)
    large = rng.permutation(count) < max(2, count // 4096)
    per_order = np.where(large, 7, rng.integers(1, 8, count))
    first = np.concatenate(([0], np.cumsum(per_order)))
    lines, price, shipped = _lines(rng, words, key, date, large, per_order, first, parts, suppliers)
    open_lines = np.add.reduceat(~shipped, first[:-1])
    customer = rng.integers(0, customers // 3, count) * 3 + rng.integers(1, 3, count)
    orders = pa.table(
        {
            "o_orderkey": key,
            "o_custkey": customer,
            "o_orderstatus": _pick("FOP", np.where(open_lines == 0, 0, np.where(open_lines == per_order, 1, 2))),
            "o_totalprice": money(np.add.reduceat(price, first[:-1])),
            "o_orderdate": _dates(date),
            "o_orderpriority": _pick(PRIORITIES, rng.integers(0, 5, count)),
            "o_clerk": _numbered("Clerk#", rng.integers(1, max(2, count // 1500), count)),
            "o_shippriority": np.zeros(count, np.int32),
            "o_comment": words.take(count, 19, 78),
        }
    )
    return orders, lines


def _lines(
    rng: np.random.Generator,
    words: _Pool,
    key: Ints,
    date: Ints,
    large: NDArray[np.bool_],
    per_order: Ints,
    first: Ints,
    parts: int,
    suppliers: int,
) -> tuple[pa.Table, Ints, NDArray[np.bool_]]:
    count = int(first[-1])
    part = rng.integers(1, parts + 1, count)
    quantity = np.where(np.repeat(large, per_order), rng.integers(44, 51, count), rng.integers(1, 51, count))
    price, discount, tax = quantity * _retail_price(part), rng.integers(0, 11, count), rng.integers(0, 9, count)
    ordered = np.repeat(date, per_order)
    ship = ordered + rng.integers(1, 122, count)
    receipt = ship + rng.integers(1, 31, count)
    returned = np.where(receipt <= CURRENT, rng.integers(0, 2, count), 2)
    table = pa.table(
        {
            "l_orderkey": np.repeat(key, per_order),
            "l_partkey": part,
            "l_suppkey": _supplier_of(part, rng.integers(0, 4, count), suppliers),
            "l_linenumber": np.arange(count) - np.repeat(first[:-1], per_order) + 1,
            "l_quantity": money(quantity * 100),
            "l_extendedprice": money(price),
            "l_discount": money(discount),
            "l_tax": money(tax),
            "l_returnflag": _pick("RAN", returned),
            "l_linestatus": _pick("FO", (ship > CURRENT).astype(np.int64)),
            "l_shipdate": _dates(ship),
            "l_commitdate": _dates(ordered + rng.integers(30, 91, count)),
            "l_receiptdate": _dates(receipt),
            "l_shipinstruct": _pick(INSTRUCTIONS, rng.integers(0, 4, count)),
            "l_shipmode": _pick(MODES, rng.integers(0, 7, count)),
            "l_comment": words.take(count, 10, 43),
        }
    )
    charged = price * (100 - discount) * (100 + tax) // 10_000
    return table, charged, ship <= CURRENT


def _retail_price(part: Ints) -> Ints:
    """Cents."""
    return 90_000 + (part // 10) % 20_001 + 100 * (part % 1000)


def _supplier_of(part: Ints, place: Ints, suppliers: int) -> Ints:
    """The supplier at `place` (0 to 3) among the four of a part."""
    return (part + place * (suppliers // 4 + (part - 1) // suppliers)) % suppliers + 1


def _pick(words: Sequence[str], which: Ints) -> pa.Array:
    return pa.array(list(words)).take(pa.array(which))


def _joined(prefix: str, number: Ints) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pc.cast(pa.array(number), pa.string()), "")


def _numbered(prefix: str, number: Ints) -> pa.Array:
    digits = pc.utf8_lpad(pc.cast(pa.array(number), pa.string()), 9, "0")
    return pc.binary_join_element_wise(prefix, digits, "")


def _phone(rng: np.random.Generator, nation: Ints) -> pa.Array:
    text: Callable[[Ints], pa.Array] = lambda numbers: pc.cast(pa.array(numbers), pa.string())  # noqa: E731
    blocks = [rng.integers(low, low * 10, len(nation)) for low in (100, 100, 1000)]
    return pc.binary_join_element_wise(text(nation + 10), *map(text, blocks), "-")


def money(cents: Ints) -> pa.Array:
    """Return decimal(15, 2) from hundredths."""
    words = np.empty((len(cents), 2), np.int64)
    words[:, 0], words[:, 1] = cents, cents >> 63
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(cents), [None, pa.py_buffer(words)])


def _dates(days: Ints) -> pa.Array:
    return pa.array(days.astype(np.int32), pa.date32())
