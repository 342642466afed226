"""The OpenAPI document of the control interface, made from the table of routes."""

from __future__ import annotations

import re
from functools import lru_cache
from inspect import cleandoc
from typing import Any

from fakeamqp.management.control import schemas
from fakeamqp.management.control.control import PREFIX
from fakeamqp.management.control.routes import JSON, LONGEST_WAIT, ROUTES, HttpRoute
from fakeamqp.management.control.schemas import COMPONENTS, Schema

_TEXT: Schema = {"type": "string"}
_ERROR: Schema = {
    "type": "object",
    "properties": {"error": _TEXT, "reason": _TEXT},
    "required": ["error", "reason"],
}
_REFUSED = (
    "`error` is the name of the Python error, and `reason` its text. 400: a field is missing, unknown or of "
    "another type; 401, 403: the token is missing or wrong; 404: what the path names does not exist; 409: "
    "something is not as expected, or cannot be done now."
)


@lru_cache
def document() -> dict[str, Any]:
    """The document, as OpenAPI 3.1 defines it."""
    paths: dict[str, Any] = {}
    for each in ROUTES:
        paths.setdefault(PREFIX + each.path, {})[each.method.lower()] = _operation(each)
    about = "This document. It needs no token."
    paths[f"{PREFIX}/openapi.json"] = {
        "get": {
            "operationId": "openapi",
            "summary": about,
            "security": [],
            "responses": {"200": _response(about, {"type": "object"})},
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fakeamqp: the control interface of a test broker",
            "version": "1",
            "description": (schemas.__doc__ or "").partition("\n\n")[2].strip(),
        },
        "security": [{"token": []}, {"login": []}],
        "paths": paths,
        "components": {
            "schemas": {**COMPONENTS, "Error": _ERROR},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "login": {"type": "http", "scheme": "basic", "description": "An administrator."},
            },
        },
    }


def _operation(row: HttpRoute) -> dict[str, Any]:
    summary, _, more = cleandoc(row.function.__doc__ or "").partition("\n")
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": _TEXT}
        for name in re.findall(r"\{(\w+)\}", row.path)
    ]
    schema = request_schema(row)
    made: dict[str, Any] = {
        "operationId": f"{row.method.lower()}{re.sub(r'[^a-z]+', '_', row.path)}".rstrip("_"),
        "summary": summary,
        "description": more.partition("\nArgs:")[0].strip(),
        "responses": {
            str(204 if row.answer is None else row.status): _success(row, summary),
            "4XX": _response(_REFUSED, {"$ref": "#/components/schemas/Error"}),
        },
    }
    if row.method == "GET":
        parameters += [
            {"name": name, "in": "query", "schema": each, "description": each.get("description", "")}
            for name, each in schema["properties"].items()
        ]
    elif row.method == "POST":
        required = bool(schema.get("required")) or row.body is not None
        made["requestBody"] = {"required": required, "content": {JSON: {"schema": schema}}}
    if parameters:
        made["parameters"] = parameters
    return made


def request_schema(row: HttpRoute) -> Schema:
    """The schema of the body of a request, or of its parameters."""
    if row.body is not None:
        return row.body
    schema = row.arguments.schema
    if "timeout" in schema["properties"]:
        bounds = {"minimum": 0, "maximum": LONGEST_WAIT}
        schema["properties"]["timeout"] = {**schema["properties"]["timeout"], **bounds}
    return schema


def _success(row: HttpRoute, summary: str) -> dict[str, Any]:
    if row.answer is None:
        return {"description": "Done."}
    answer = row.answer
    if row.key:
        answer = {"type": "object", "properties": {row.key: answer}, "required": [row.key]}
    return _response(summary, answer, row.kind.partition(";")[0])


def _response(about: str, schema: Schema, kind: str = JSON) -> dict[str, Any]:
    return {"description": about, "content": {kind: {"schema": schema}}}
