#!/usr/bin/env bash
# kafka-metadata-shell.sh [--snapshot FILE] ls /brokers: the IDs of the cluster's brokers, one a line. This is what
# programs ask that wait for the brokers of a cluster, such as Testcontainers' examples. Here the broker of this
# container answers, and not the file.
. "${KAFKA_COMPAT_ROOT:-}/etc/kafka-compat/settings"
words=()
while [ $# -gt 0 ]; do
    case $1 in
        -s | --snapshot | -d | --directory) shift ;;
        -*) ;;
        *) words+=("$1") ;;
    esac
    shift
done
if [ "${words[*]}" != "ls /brokers" ]; then
    echo "kafka-metadata-shell: only 'ls /brokers' is supported here" >&2
    exit 1
fi
[ ! -f "$root/tmp/kafka-compat.health" ] || mapfile -t files < "$root/tmp/kafka-compat.health"
address=$("${KAFKA_COMPAT_PYTHON:-/opt/kafka-compat/bin/python}" - "${files[@]}" <<'PYTHON'
# The address of the listener for other brokers: what the others advertise to clients may be for the host.
import os
import sys

from kafka_compat.config import load

words = sys.argv[1:]
names = [word for word in words if word and not word.startswith("--")]
config = load([name for name in names if os.path.isfile(name)], (), os.environ)
wanted = config.str("inter.broker.listener.name") or config.str("security.inter.broker.protocol")
listener = next((each for each in config.listeners if each.name == wanted), config.listeners[0])
host = listener.host if listener.host not in ("", "0.0.0.0", "::") else "127.0.0.1"
print(f"{host}:{listener.port}")
PYTHON
) || exit 1
kafka-broker-api-versions --bootstrap-server "$address" | sed -n 's/^.* (id: \([0-9]*\) .*/\1/p' | sort -n
