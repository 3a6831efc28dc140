"""A broker's cluster metadata and settings: topics, leaders, replica assignments, dynamic settings."""
