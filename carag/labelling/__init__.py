"""Label documents of any domain: cut them into passages, apply rules, and keep the label's history over time."""
