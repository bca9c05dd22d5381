"""Keep runs of the SEC EDGAR benchmark, write the README's section from them, and tune generators."""
