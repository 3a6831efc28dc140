"""The metadata store in a ZooKeeper ensemble, with the kazoo client."""
