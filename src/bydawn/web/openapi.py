"""The OpenAPI document, from the same table that the server routes by."""

import re
from collections.abc import Iterable, Sequence
from types import NoneType
from typing import Any

import msgspec

from bydawn import __version__
from bydawn.web.api import Refusal
from bydawn.web.auth import Access
from bydawn.web.calls import Events, Route, either

_REFUSALS = {
    400: "It cannot be read, or its values are wrong",
    401: "No token, or a wrong one",
    403: "The token may only look, or the request comes from another site",
    404: "There is no such loop, round, task or document",
    409: "The loop has gone on since, or its state does not allow it",
    413: "It is too large",
    415: "It is not JSON",
    421: "Not a name that the server answers to",
    503: "The machine or the loop does not let us",
}
_READS = (400, 401, 403, 404, 421, 503)
_CLASH = "It has another version by now; nothing was overwritten"
_NUMBER = {"type": "integer", "minimum": 1, "maximum": 999_999_999}


class _Types:
    """The schemas of everything that the table reads and writes; what has a name is kept once, under that name."""

    def __init__(self, rows: Sequence[Route]) -> None:
        kinds = {kind for row in rows for kind in (row.takes, *row.gives) if hasattr(kind, "__struct_fields__")}
        known = sorted((kinds | {Refusal}) - {Events}, key=lambda kind: kind.__name__)
        schemas, self.components = msgspec.json.schema_components(known, ref_template="#/components/schemas/{name}")
        self._schemas: dict[Any, dict[str, Any]] = dict(zip(known, schemas, strict=True))

    def taken(self, kind: Any) -> dict[str, Any]:
        return self._schemas[kind]

    def given(self, *kinds: Any) -> dict[str, Any]:
        """Every answer has the number of its format beside its own fields; what has no type of ours is any object.

        Those of several kinds need no tag as long as nothing has to be read from them.
        """
        found = [self._schemas[kind] for kind in kinds if kind in self._schemas]
        if not found:
            return {"type": "object"}
        own = found[0] if len(found) == 1 else {"anyOf": found}
        number = {"type": "object", "properties": {"schema": {"const": 1}}, "required": ["schema"]}
        return {"allOf": [own, number]}


def document(routes: Iterable[Route]) -> dict[str, Any]:
    rows = [*routes]
    types = _Types(rows)
    paths: dict[str, Any] = {}
    for row in rows:
        paths.setdefault(row.path, {})[row.method.lower()] = _operation(row, types)
    return {
        "openapi": "3.1.0",
        "info": {"title": "bydawn", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": types.components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(row: Route, types: _Types) -> dict[str, Any]:
    refused = _READS if row.method == "GET" else _REFUSALS
    operation: dict[str, Any] = {
        "operationId": row.name,
        "summary": row.says,
        "parameters": [*_in_path(row), *_in_query(row), *_in_header(row)],
        "responses": {
            str(row.status): {"description": "Done", "content": _answer(row, types)},
            **{str(code): _json(_REFUSALS[code], types.given(Refusal)) for code in refused},
        },
    }
    if row.clashes:
        operation["responses"]["412"] = _json(_CLASH, types.given(row.clashes))
    if row.takes:
        needed = any(field.required for field in msgspec.structs.fields(row.takes))
        content = {"application/json": {"schema": types.taken(row.takes)}}
        operation["requestBody"] = {"content": content, "required": needed}
    if row.access is Access.STEER:
        operation["description"] = "Needs a token that may steer."
    return operation


def _answer(row: Route, types: _Types) -> dict[str, Any]:
    if row.streams:
        return {"text/event-stream": {}}  # events, each with `event` and `data`, perhaps `id`: docs/web.md
    return {"application/json": {"schema": types.given(*(kind for kind in row.gives if kind is not row.clashes))}}


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _in_path(row: Route) -> Iterable[dict[str, Any]]:
    for name in re.findall(r"{(\w+)", row.path):
        kind = _NUMBER if name == "number" else {"type": "string"}
        yield {"name": name, "in": "path", "required": True, "schema": kind}


def _in_query(row: Route) -> Iterable[dict[str, Any]]:
    if row.asks is None:
        return
    for field in msgspec.structs.fields(row.asks):
        kind = next(kind for kind in either(field.type) if kind is not NoneType)
        usual = {} if field.default in (None, "", ()) else {"default": field.default}
        schema = msgspec.json.schema(kind) | usual
        yield {"name": field.encode_name, "in": "query", "required": False, "schema": schema}


def _in_header(row: Route) -> Iterable[dict[str, Any]]:
    if row.clashes:
        yield {"name": "If-Match", "in": "header", "required": True, "schema": {"type": "string"}}
