"""The arguments that queues, exchanges and consumers take, and the policy keys: one row each.

A row says everything about one argument: its name, the option that it sets, how its value is read and
checked, which types take it in which personality, whether a redeclaration must repeat it, and how a policy
sets the same option. Personalities, equivalence, policies and the records of options are derived from it.
"""
