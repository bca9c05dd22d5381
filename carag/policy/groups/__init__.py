"""Read statements about groups: who is a member, from when, until when. Pure: files are read by the caller."""
