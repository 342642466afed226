"""Random programs: lists of steps of cases, drawn at random, and what must come of each.

`strategies` draws programs, `reference` foretells what each step brings about, and `check` plays them on a
broker without sockets and compares. `differential/programs.py` plays them on nodes of RabbitMQ.
"""
