"""Run the systems that are compared, and score what each returns."""
