"""Golden bytes: what each method, command, control and struct is on the wire, made without the codec.

`make` writes the tables (`*.jsonl`) from the published definitions, with an encoder of its own. `tables`
compares the codec with them, `mutants` shows that no change of a declaration passes this comparison, and
`outside` has other programs encode and read the same values. None of `published`, `values`, `encoding` and
`make` imports anything of the broker.
"""
