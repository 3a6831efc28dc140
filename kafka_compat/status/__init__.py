"""Observe, evaluate and draw the state and problems of a cluster, for `kafka-compat status`."""
