"""What ``carag attack`` finds in ten retrieval systems, ours among them, each with its own documented filter."""
