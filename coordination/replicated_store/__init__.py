"""Metadata store whose tree every node of a quorum keeps, from the committed records of one log."""
