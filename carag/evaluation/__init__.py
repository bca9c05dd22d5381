"""Run the SEC EDGAR benchmark, or one over a store of your own, and report what leaks and what is answered.

`run` puts every case of `cases` to every system of `systems` and writes one `row` for each; `run_store` does so for a
store and questions of your own; `safety` tests whole stores; `report` measures rows with `statistics` and needs neither
an engine nor a clock. A metric that is more than a mean over rows has its own folder.
"""
