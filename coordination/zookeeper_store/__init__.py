"""The metadata store in a ZooKeeper ensemble, accessed with the kazoo client."""
