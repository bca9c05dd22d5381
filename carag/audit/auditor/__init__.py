"""Read, examine and export a log from outside, without its keys or its lock."""
