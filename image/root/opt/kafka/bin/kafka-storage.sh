#!/usr/bin/env bash
# Kafka's tool of this name. A settings file with process.roles is formatted as by `kafka-compat storage`. Where the
# settings are in the environment, the broker formats its folders when it starts, with the ID given here, unless
# CLUSTER_ID is set: scripts written for other images format before each start.
root=${KAFKA_COMPAT_ROOT:-}
cluster_id='' is_node=no words=("$@")
for index in "${!words[@]}"; do
    word=${words[index]} next=${words[index + 1]:-}
    case $word in
        -c | --config) file=$next ;;
        --config=*) file=${word#*=} ;;
        -t | --cluster-id) cluster_id=$next ;;
        --cluster-id=*) cluster_id=${word#*=} ;;
        -S | --add-scram | --add-scram=*)
            echo "--add-scram is not supported: set KAFKA_KAFKA_COMPAT_SCRAM_CREDENTIALS_FILE instead" >&2 ;;
    esac
done
[ -z "${file:-}" ] || ! grep -qs '^[[:space:]]*process\.roles' "$file" || is_node=yes
case $is_node-${1:-} in
    *-random-uuid)
        # 16 bytes in base64 for addresses; Kafka's never begin with a dash. Without Python, since each start waits.
        id=-
        while [[ $id == -* ]]; do id=$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '='); done
        echo "$id"
        ;;
    no-format)
        [ -z "$cluster_id" ] || printf %s "$cluster_id" 2>/dev/null > "$root/tmp/kafka-compat.cluster-id"
        echo "Nothing to format: the broker makes its folders when it starts."
        ;;
    no-info) echo "Nothing was formatted: the broker makes its folders when it starts." ;;
    *) exec kafka-compat storage "$@" ;;
esac
