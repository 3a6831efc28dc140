#!/usr/bin/env bash
exec "${KAFKA_COMPAT_ROOT:-}/etc/confluent/docker/run" "$@"
