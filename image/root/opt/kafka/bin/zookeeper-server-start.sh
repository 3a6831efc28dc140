#!/usr/bin/env bash
# zookeeper-server-start.sh [-daemon] zookeeper.properties: there is no ZooKeeper in this image, and a lone broker needs
# none. The mark tells the broker so; and since some wait for the port, it is open, and closes whatever comes.
[ "${1:-}" != -daemon ] || { "$0" "${@:2}" < /dev/null & exit 0; }
: > "${KAFKA_COMPAT_ROOT:-}/tmp/kafka-compat.zookeeper"
echo "No ZooKeeper is started: the broker of this container keeps its metadata itself."
port=$(sed -n 's/^ *clientPort *= *\([0-9]*\).*/\1/p' "${1:-/dev/null}" 2>/dev/null)
exec nc -l -k -N "${port:-2181}" < /dev/null > /dev/null
