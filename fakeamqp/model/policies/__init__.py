"""Policies and operator policies: options that an operator gives to queues and exchanges by their names.

`policy` describes one policy, checks its definition, and combines it with an operator policy and arguments;
`book` keeps the policies of a virtual host, and imports `policy` with the first one.
"""
