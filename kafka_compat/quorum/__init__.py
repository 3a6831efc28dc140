"""The node of a controller quorum: the metadata log, requests to other nodes, and everything else with I/O."""
