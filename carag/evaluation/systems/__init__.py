"""Run the systems that are compared, and score what each returns.

A new system takes its name in `carag.evaluation.row.SYSTEMS`, a method of `Systems` from a pair to an `Output`, and a
line of the report's first page; an index or a scan that it needs is in a module of its own, as `baselines` is. A system
that the user brings is no method: `own` loads it, and its name begins with ``own:``.
"""
