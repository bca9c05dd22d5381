"""Store personal values encrypted, apart from the records that commit to them, and erase them by destroying keys."""
