"""Who is alive and who leads: the metadata store and the controller; no wire protocol."""
