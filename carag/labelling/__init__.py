"""Label documents of any domain: split them into passages, apply rules, and keep the label's history over time."""
