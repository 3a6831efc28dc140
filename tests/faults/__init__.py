"""Faults under load: the brokers of a cluster on a real ZooKeeper are killed, paused, partitioned and
restarted.
"""
