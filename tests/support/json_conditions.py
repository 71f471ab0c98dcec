"""Random conditions on a value of JSON documents, and the values that they compare."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

VALUES: dict[str, tuple[list[Any], list[str]]] = {
    "int": ([5, -1, 0, 7, 2**63 - 1, -(2**63)], ["CAST({x} AS BIGINT)", "({x})::BIGINT", "json_get_int(j, 'a')"]),
    "float": ([1.5, 0.5, 3, -2, 1e300, -0.0, 2**64 - 1], ["CAST({x} AS DOUBLE)", "json_get_float(j, 'a')"]),
    "text": (["x", "", "xy", "é", "a'b", "y\u0000z", "5"], ["({x})", "json_get_string(j, 'a')"]),
    "bool": ([True, False], ["CAST({x} AS BOOLEAN)", "json_get_bool(j, 'a')"]),
}
EXTRACTS = ["j ->> '$.a'", "j ->> 'a'", "json_extract_string(j, '$.a')", "j ->> '$.\"a\"'"]


def constants(kind: str) -> st.SearchStrategy[str]:
    values = VALUES[kind][0]
    return st.sampled_from(values).map(lambda v: "'" + v.replace("'", "''") + "'" if isinstance(v, str) else str(v))


@st.composite
def conditions(draw: st.DrawFn, kind: str) -> str:
    expression = draw(st.sampled_from(VALUES[kind][1])).format(x=draw(st.sampled_from(EXTRACTS)))
    low, high = draw(constants(kind)), draw(constants(kind))
    form = draw(
        st.sampled_from(
            [
                *(f"{{}} {op} {{low}}" for op in ("=", "<>", "<", "<=", ">", ">=")),
                *("{} IN ({low}, {high})", "{} NOT IN ({low}, {high})", "{} BETWEEN {low} AND {high}"),
                *("{} IS NULL", "{} IS NOT NULL", "NOT ({} = {low})", "{} = {low} OR {} = {high}"),
                *("{} > {low} AND {} <= {high}", "{low} = {}", "{} IS DISTINCT FROM {low}", "{} = {low} AND id < 9"),
            ]
        )
    )
    return (
        form.replace("{}", expression).format(low=low, high=high) if "{low}" in form else form.replace("{}", expression)
    )
