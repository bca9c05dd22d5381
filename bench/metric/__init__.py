"""Train and measure what the regulatory compliance metric judges with."""
