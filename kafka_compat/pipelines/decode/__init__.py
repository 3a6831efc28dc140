"""Decode values of records to typed columns, with schemas from a schema registry."""
