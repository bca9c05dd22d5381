"""Run the SEC EDGAR benchmark, or that of a store of the user's own, and report what leaks and what is answered.

`run` asks every system of `systems` every case of `cases` and writes one `row` for each; `run_store` does so over a
store and questions of the user's own; `safety` adds what only whole stores can show; `report` measures rows with
`statistics` and needs neither an engine nor a clock. A metric that is more than a mean over rows has a folder of its
own next to these.
"""
