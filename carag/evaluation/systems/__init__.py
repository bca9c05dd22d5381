"""Run the systems that are compared, and score what each returns.

A new system takes a name in `carag.evaluation.row.SYSTEMS`, a method of `Systems` from a pair to an `Output`, and a
line on the report's first page; an index or a scan that it needs gets its own module, like `baselines`. A system that
the user brings is not a method: `own` loads it, and its name begins with ``own:``.
"""
