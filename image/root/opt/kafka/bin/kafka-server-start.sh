#!/usr/bin/env bash
# kafka-server-start.sh [-daemon] server.properties [--override name=value]…
if [ $# = 0 ]; then
    echo "USAGE: $0 [-daemon] server.properties [--override property=value]*"
    exit 1
fi
serve=${KAFKA_COMPAT_ROOT:-}/etc/kafka-compat/serve
[ "$1" != -daemon ] || { "$serve" "$@" < /dev/null & exit 0; }
exec "$serve" "$@"
