"""Extract the facts of a filing: form, items, dates, jurisdictions, financial statements, cover page."""
