"""The control interface: what a test does with a broker or a proxy, for tests that run in another process.

A route is a method of `Broker`, `Proxy` or one of their handles, with the same name and the same arguments:

| module | what it has |
|---|---|
| `routes` | the table of routes, from which the paths and the OpenAPI document are made |
| `words` | faults in the words of `Faults`, `Rule` and `Network` |
| `schemas` | JSON Schema of arguments and views, made of their annotations |
| `document` | the OpenAPI document |
| `access` | who may use it: the token, or the login of an administrator |
| `app` | the ASGI apps of the paths below `/control/v1` |
| `control` | `Control`, what the routes work with |

The version is in the path, so that a test in any language pins it without a header: routes and fields are
added to `v1`, and none is taken away.
"""
