#!/usr/bin/env bash
# Tell the broker of this container to stop.
if ! kill -TERM "$(cat "${KAFKA_COMPAT_ROOT:-}/tmp/kafka-compat.pid" 2>/dev/null)" 2>/dev/null; then
    echo "No kafka server to stop"
    exit 1
fi
