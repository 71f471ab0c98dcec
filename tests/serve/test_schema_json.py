"""Schemas as JSON, in both directions."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import LanceDuckError
from lance_duck.serve.rest.schema_json import json_of_schema, schema_from_json

TYPES = st.recursive(
    st.sampled_from(
        [
            *(pa.bool_(), pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.binary()),
            *(pa.large_string(), pa.large_binary(), pa.binary(3), pa.date32(), pa.date64(), pa.time32("ms"), pa.null()),
            *(pa.time64("ns"), pa.timestamp("us"), pa.timestamp("s", "Europe/Paris"), pa.duration("ns")),
            *(pa.decimal128(10, 2), pa.decimal256(50, 0), pa.dictionary(pa.int16(), pa.string())),
        ]
    ),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        st.tuples(inner, st.integers(1, 9)).map(lambda each: pa.list_(*each)),
        st.lists(inner, max_size=3).map(lambda each: pa.struct([(f"f{i}", type_) for i, type_ in enumerate(each)])),
        inner.map(lambda value: pa.map_(pa.string(), value)),
    ),
    max_leaves=4,
)
SCHEMAS = st.lists(st.tuples(TYPES, st.booleans(), st.none() | st.just({"a": "b"})), max_size=3).map(
    lambda columns: pa.schema(
        [
            pa.field(f"c{i}", type_, null or pa.types.is_null(type_), meta)
            for i, (type_, null, meta) in enumerate(columns)
        ],
        {"table": "x"},
    )
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["list", "struct", "map", "fixed_size_list", "int8", "x"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("name", "type", "fields", "length", "nullable", "metadata"), inner)
        ),
    ),
)


@given(schema=SCHEMAS)
def test_a_schema_survives_json(schema: pa.Schema) -> None:
    again = schema_from_json(json.loads(json.dumps(json_of_schema(schema))))
    assert again.equals(schema, check_metadata=True)


@given(value=JSON)
def test_any_json_is_a_schema_or_an_error(value: Any) -> None:
    with suppress(LanceDuckError):
        assert isinstance(schema_from_json(value), pa.Schema)


def test_an_extension_type_becomes_metadata() -> None:
    schema = schema_from_json(json_of_schema(pa.schema([("x", pa.uuid())])))
    assert schema.field("x").type == pa.binary(16)
    assert schema.field("x").metadata[b"ARROW:extension:name"] == b"arrow.uuid"


def test_deep_nesting_is_refused() -> None:
    type_: dict[str, Any] = {"type": "int8"}
    for _ in range(100):
        type_ = {"type": "list", "fields": [{"name": "item", "type": type_}]}
    with pytest.raises(LanceDuckError, match="nested too deeply"):
        schema_from_json({"fields": [{"name": "x", "type": type_}]})
