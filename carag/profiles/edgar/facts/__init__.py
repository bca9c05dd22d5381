"""State the facts of a filing: form, items, dates, jurisdictions, statements, cover page."""
