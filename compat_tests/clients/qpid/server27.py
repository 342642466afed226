# ruff: noqa
"""Runs on Python 2.7: does with the client what the test, on the other end of two pipes, tells it.

A request and its answer are a line of JSON each; see `remote` for their form.
"""

from __future__ import print_function

import json
import sys
import traceback
from uuid import UUID

OBJECTS = {}
"""What the other side holds, by number."""


def encode(value):
    if value is None or isinstance(value, (bool, float, unicode)):
        return value
    if isinstance(value, (int, long)):
        return value
    if type(value) is str:
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, UUID):
        return {"uuid": value.hex}
    if isinstance(value, (list, tuple)):
        return {"list": [encode(each) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(name), encode(each)] for name, each in value.items()]}
    OBJECTS[id(value)] = value
    return {"object": id(value), "shown": repr(value)}


def decode(value):
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "bytes":
        return content.encode("latin-1")
    if kind == "uuid":
        return UUID(content)
    if kind == "list":
        return [decode(each) for each in content]
    if kind == "dict":
        return dict((decode(name), decode(each)) for name, each in content)
    return OBJECTS[content]


def serve(request):
    if "module" in request:
        return __import__(str(request["module"]), None, None, ["names"])
    target = OBJECTS[request["on"]]
    if "get" in request:
        return getattr(target, str(request["get"]))
    if "set" in request:
        return setattr(target, str(request["set"]), decode(request["value"]))
    named = dict((str(name), decode(each)) for name, each in request["named"].items())
    return target(*[decode(each) for each in request["given"]], **named)


def main():
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in iter(sys.stdin.readline, ""):
        try:
            answer = {"value": encode(serve(json.loads(line)))}
        except Exception as error:
            answer = {"error": type(error).__name__, "text": str(error), "at": traceback.format_exc()}
            answer["of"] = [encode(each) for each in error.args]
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


main()
