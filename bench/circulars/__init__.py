"""Keep marks made by hand in regulatory circulars, the yardstick of what cuts them into passages."""
