"""Worlds with one constraint that keeps a gang from its start, and whether the scheduler names it.

`kinds` and `queue_kinds` make them from a seeded generator, one function a kind; `judge` decides by running the
scheduler on the world as it is, without the constraint, and with the remedies that its reason names.
`python -m tests.constraints` judges many.
"""
