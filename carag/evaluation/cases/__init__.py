"""Build what is asked: corpora, questions with their gold, sessions, attacks, and who may see which passage."""
