"""The node of a metadata quorum: the metadata log, requests to other nodes, and everything else with I/O."""
