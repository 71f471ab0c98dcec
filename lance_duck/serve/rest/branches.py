"""Routes of branches.

| route (POST `/v1/table/{id}/…`) | body | answer |
|---|---|---|
| `branches/create` | `name`, `from_branch`?, `from_version`? | {} |
| `branches/list` | `limit`?, `page_token`? | branches: {name: {parentBranch, parentVersion, createAt, …}}, page_token |
| `branches/delete` | `name` | {} |

Other routes take the field `branch`, in the body or, for uploads, in the query string.
"""

from __future__ import annotations

from typing import Any, Final

from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.http.answers import HttpAnswer, json_answer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.http.routes import HttpRoute
from lance_duck.serve.problems import Subject, about
from lance_duck.serve.rest.change_fields import needed_text
from lance_duck.serve.rest.dialect import answer_headers, checked_body, page, requested_table


def create_branch(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Create a branch that begins with a version."""
    body = checked_body(request, ("name", "from_branch", "from_version"))
    name = needed_text(body, "name")
    start = requested_table(call, request, {"branch": body.get("from_branch"), "version": body.get("from_version")})
    with about(Subject.BRANCH):
        table = start.create_branch(name)
    return json_answer({}, headers=answer_headers(table))


def list_branches(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the branches of a table, except main."""
    body = checked_body(request, ("limit", "page_token"))
    table = requested_table(call, request, {})
    branches = table.branches.list()
    found = page([*branches], request, body)
    listed = {name: _branch_to_json(branches[name]) for name in found.pop("names")}
    return json_answer({"branches": listed, **found}, headers=answer_headers(table))


def _branch_to_json(branch: dict[str, Any]) -> dict[str, Any]:
    parent = branch["parent_branch"]
    return {
        **({} if parent is None else {"parentBranch": parent}),
        "parentVersion": branch["parent_version"],
        "createAt": branch["create_at"] or 0,
        "manifestSize": branch["manifest_size"] or 0,
        "metadata": dict(branch["metadata"]),
    }


def delete_branch(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Delete a branch with its versions."""
    body = checked_body(request, ("name",))
    name, table = needed_text(body, "name"), requested_table(call, request, {})
    with about(Subject.BRANCH):
        table.branches.delete(name)
    return json_answer({}, headers=answer_headers(table))


BRANCHES: Final = (
    HttpRoute("POST", "/v1/table/{id}/branches/create", create_branch, is_change=True),
    HttpRoute("POST", "/v1/table/{id}/branches/list", list_branches),
    HttpRoute("POST", "/v1/table/{id}/branches/delete", delete_branch, is_change=True),
)
"""Routes of this module."""
