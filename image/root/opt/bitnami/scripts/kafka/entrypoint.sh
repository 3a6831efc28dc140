#!/usr/bin/env bash
exec "${KAFKA_COMPAT_ROOT:-}/etc/kafka-compat/entrypoint" "$@"
