#!/usr/bin/env bash
# What scripts ask of Kafka's tool of this name: a random id, and the formatting of folders. The broker formats them
# when it starts, with CLUSTER_ID. Only a settings file of a quorum's node is formatted, as by `kafka-compat storage`.
of_quorum() {
    while [ $# -gt 0 ]; do
        case $1 in
            -c | --config) grep -qs '^[[:space:]]*process\.roles' "${2:-}" && return 0 ;;
            --config=*) grep -qs '^[[:space:]]*process\.roles' "${1#*=}" && return 0 ;;
        esac
        shift
    done
    return 1
}
! of_quorum "$@" || exec kafka-compat storage "$@"
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
