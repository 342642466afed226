"""RabbitMQ's HTTP API: `Broker(management=True)` and `fakeamqp serve --management-port PORT`.

`companion` is what a broker starts and stops, `server` the thread that speaks HTTP, `app` the ASGI app with
its routes, and `resources` one module for each kind of thing that the API shows and changes.

A request is handled on the thread of the HTTP server. It reads and changes the broker inside the engine, a
slice at a time, and makes JSON of what it has read outside of it. So HTTP never holds the engine up for long.
"""
