"""Cluster coordination: the metadata store and the controller, without the wire protocol."""
