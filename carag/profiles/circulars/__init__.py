"""Read and label an authority's circulars and directions: their numbers, their addressees, and what they replace."""
