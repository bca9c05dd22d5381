"""Label documents of any domain: rules, labels and their history, canonical bytes, passages."""
