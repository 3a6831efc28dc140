#!/usr/bin/env bash
# What scripts ask of Kafka's tool of this name: a random id, and the formatting of folders, which need none here.
case ${1:-} in
    random-uuid)
        # 16 bytes in base64 for addresses; Kafka's never begin with a dash.
        id=-
        while [[ $id == -* ]]; do id=$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '='); done
        echo "$id"
        ;;
    format) echo "Nothing to format: the broker makes its folders when it starts." ;;
    info) echo "Nothing was formatted: the broker makes its folders when it starts." ;;
    *)
        echo "usage: kafka-storage {random-uuid,format,info} …" >&2
        exit 1
        ;;
esac
