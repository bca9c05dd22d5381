"""Hold the profile of a hospital's clinical notes, as data."""
