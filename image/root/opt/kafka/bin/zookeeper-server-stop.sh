#!/usr/bin/env bash
# There is no ZooKeeper in this image.
rm -f "${KAFKA_COMPAT_ROOT:-}/tmp/kafka-compat.zookeeper"
