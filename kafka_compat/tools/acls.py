"""kafka-acls: list, add and remove access control lists."""

import sys
from typing import Any, Final, NamedTuple

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from kafka_compat.tools import show
from kafka_compat.tools.admin import cluster_of
from kafka_compat.tools.failure import Failure, check, illegal_argument, in_background, of_client
from kafka_compat.tools.options import Options

RESOURCES: Final = tuple(ResourceType.__members__)
PATTERNS: Final = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
OPERATIONS: Final = (*Operation.__members__, "TWO_PHASE_COMMIT")
PERMISSIONS: Final = ("UNKNOWN", "ANY", "DENY", "ALLOW")
"""Permission types, indexed by their codes in requests."""

SUPPORTED: Final = {
    "TOPIC": "READ WRITE CREATE DESCRIBE DELETE ALTER DESCRIBE_CONFIGS ALTER_CONFIGS ALL",
    "GROUP": "READ DESCRIBE DELETE DESCRIBE_CONFIGS ALTER_CONFIGS ALL",
    "CLUSTER": "CREATE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE ALTER DESCRIBE ALL",
    "TRANSACTIONAL_ID": "DESCRIBE WRITE TWO_PHASE_COMMIT ALL",
    "DELEGATION_TOKEN": "DESCRIBE ALL",
    "USER": "CREATE_TOKENS DESCRIBE_TOKENS ALL",
}
"""Operations that each resource type supports in Kafka 4. Older releases support fewer operations."""


class Resource(NamedTuple):
    """The resource pattern of an ACL, or a filter for resource patterns."""

    kind: str
    name: str
    pattern: str

    def __str__(self) -> str:
        return f"ResourcePattern(resourceType={self.kind}, name={self.name}, patternType={self.pattern})"


class Entry(NamedTuple):
    """Principal, host, operation and permission of one ACL."""

    principal: str
    host: str
    operation: str
    permission: str

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation}, "
            f"permissionType={self.permission})"
        )


CLUSTER: Final = Resource("CLUSTER", CLUSTER_NAME, "LITERAL")


def pattern_of(text: str) -> str:
    """Return the pattern type with this name. Raises Failure if the name is unknown."""
    if text.upper() not in PATTERNS:
        cause = f"Value [{text}] is not one of [ANY|MATCH|LITERAL|PREFIXED]"
    elif text.upper() == "UNKNOWN":
        cause = f"Unknown resource-pattern-type: {text}"
    else:
        return text.upper()
    raise Failure(
        "joptsimple.OptionArgumentConversionException",
        f"Cannot parse argument '{text}' of option resource-pattern-type",
        Failure("joptsimple.ValueConversionException", cause),
    )


def operation_of(text: str) -> str:
    """Return the operation with this name, or UNKNOWN if there is none."""
    names = {name.replace("_", ""): name for name in OPERATIONS}
    return names.get(text.upper(), "UNKNOWN")


def principal_of(text: str) -> str:
    """Check and return a principal. Raises Failure if it does not have the form TYPE:NAME."""
    if ":" not in text:
        raise illegal_argument(f"expected principalType:principalName but got {text}")
    return text


_ANY: Final = 1
_ANYONE: Final[dict[str, Any]] = {
    "principal_filter": None,
    "host_filter": None,
    "operation": _ANY,
    "permission_type": _ANY,
}
_RESOURCES: Final = {
    "topic": "TOPIC",
    "group": "GROUP",
    "transactional-id": "TRANSACTIONAL_ID",
    "delegation-token": "DELEGATION_TOKEN",
    "user-principal": "USER",
}
_ALSO: Final = "command-property= authorizer= authorizer-properties= zk-tls-config-file="
Wanted = dict[Resource, list[Entry]]


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    options = Options.or_usage("acls", arguments, also=_ALSO)
    options.exit_for_help()
    _check(options)
    try:
        if options.has("add"):
            _add(options)
        elif options.has("remove"):
            _remove(options)
        else:
            _list(options)
    except Exception as error:
        failure = of_client(error)
        print(f"Error while executing ACL command: {failure.message}\n{failure.trace}", file=options.errors)
        return 1
    return 0


def _check(options: Options) -> None:
    if options.has("bootstrap-server") and options.has("bootstrap-controller"):
        options.usage_error("--bootstrap-server and --bootstrap-controller exclude each other")
    if options.has("bootstrap-server") and options.has("authorizer"):
        options.usage_error("--bootstrap-server and --authorizer exclude each other")
    if options.has("bootstrap-controller"):
        options.usage_error(
            "--bootstrap-controller is not supported by this command: give --bootstrap-server"
        )
    if not options.has("bootstrap-server"):
        if options.has("authorizer") or options.has("authorizer-properties"):
            options.require("authorizer-properties")
            options.usage_error(
                "ACLs of ZooKeeper are not supported by this command: give --bootstrap-server"
            )
        options.usage_error("Specify --bootstrap-server or --bootstrap-controller")
    if options.has("authorizer-properties"):
        options.usage_error("--authorizer-properties requires --authorizer")
    if sum(map(options.has, ("add", "remove", "list"))) != 1:
        options.usage_error("Specify one action: --list, --add or --remove.")
    options.forbid(
        "list", "producer", "consumer", "allow-host", "allow-principal", "deny-host", "deny-principal"
    )
    for role in ("producer", "consumer"):
        options.forbid(role, "operation", "deny-principal", "deny-host")
    if options.has("principal") and not options.has("list"):
        options.usage_error("--principal requires --list")
    if options.has("producer") and not options.has("topic"):
        options.usage_error("With --producer you must specify a --topic")
    if options.has("idempotent") and not options.has("producer"):
        options.usage_error("--idempotent requires --producer")
    alone = not options.has("producer")
    if options.has("consumer") and (
        not options.has("topic")
        or not options.has("group")
        or (alone and (options.has("cluster") or options.has("transactional-id")))
    ):
        options.usage_error(
            "--consumer requires --topic and --group, and excludes --cluster and --transactional-id."
        )


# --- actions


def _add(options: Options) -> None:
    from kafka_compat.protocol.messages.create_acls import AclCreation

    pattern = _pattern(options)
    if pattern in ("ANY", "MATCH"):
        options.usage_error(f"--add does not accept --resource-pattern-type '{pattern}'.")
    wanted = _wanted(options)
    if not all(wanted.values()):
        options.usage_error("--add requires --allow-principal or --deny-principal.")
    with cluster_of(options) as cluster:
        for resource, asked in wanted.items():
            known = _described(cluster, resource).get(resource, ())
            entries = [entry for entry in asked if entry not in known]
            if not options.as_json:
                for entry in asked:
                    if entry in known:
                        print(f"Acl (pattern={resource}, entry={entry}) already exists.")
                if entries:
                    print(f"Adding ACLs for resource `{resource}`: \n {_shown(entries)}\n")
            if not entries:
                continue
            with in_background():
                answer = cluster.ask_controller(
                    ApiKey.CREATE_ACLS,
                    "createAcls",
                    creations=[
                        AclCreation(
                            resource_type=RESOURCES.index(resource.kind),
                            resource_name=resource.name,
                            resource_pattern_type=PATTERNS.index(resource.pattern),
                            principal=entry.principal,
                            host=entry.host,
                            **_numbers(entry),
                        )
                        for entry in entries
                    ],
                )
            check(*answer.results)
    if options.as_json:
        show.as_json(_as_json(wanted))


def _remove(options: Options) -> None:
    removed: Wanted = {}
    with cluster_of(options) as cluster:
        for resource, entries in _wanted(options).items():
            if entries:
                what = f"remove ACLs: \n {_shown(entries)}\n from resource filter `{resource}`"
            else:
                what = f"delete all ACLs for resource filter `{resource}`"
            if options.has("force") or _confirmed(f"Are you sure you want to {what}? (y/n)"):
                _remove_from(cluster, resource, entries, removed)
    if options.as_json:
        show.as_json(_as_json(removed))


def _confirmed(question: str) -> bool:
    print(question, flush=True)
    return sys.stdin.readline().strip().lower() == "y"


def _remove_from(cluster: Any, resource: Resource, entries: list[Entry], removed: Wanted) -> None:
    from kafka_compat.protocol.messages.delete_acls import DeleteAclsFilter

    filters = [
        {"principal_filter": entry.principal, "host_filter": entry.host, **_numbers(entry)}
        for entry in entries
    ]
    where = _resource_filter(resource)
    with in_background():
        answer = cluster.ask_controller(
            ApiKey.DELETE_ACLS,
            "deleteAcls",
            filters=[DeleteAclsFilter(**where, **each) for each in filters or [_ANYONE]],
        )
    for result in answer.filter_results:
        check(result)
        for match in result.matching_acls:
            check(match)
            found = Resource(
                RESOURCES[match.resource_type], match.resource_name, PATTERNS[match.pattern_type]
            )
            removed.setdefault(found, []).append(_entry(match))


def _list(options: Options) -> None:
    with cluster_of(options) as cluster:
        filters: list[Resource | None] = [*_resources(options)] or [None]
        found: Wanted = {}
        for one in filters:
            for resource, entries in _described(cluster, one).items():
                kept = found.setdefault(resource, [])
                kept += [entry for entry in entries if entry not in kept]
    principals = [principal_of(text.strip()) for text in options.values("principal")]
    if options.as_json:
        if principals:
            found = {
                resource: kept
                for resource, entries in found.items()
                if (kept := [entry for entry in entries if entry.principal in principals])
            }
        show.as_json(_as_json(found))
        return
    if not principals:
        _print(found)
    for principal in dict.fromkeys(principals):
        print(f"ACLs for principal `{principal}`")
        own = {
            resource: [entry for entry in entries if entry.principal == principal]
            for resource, entries in found.items()
        }
        _print({resource: entries for resource, entries in own.items() if entries})


def _print(found: Wanted) -> None:
    for resource, entries in found.items():
        print(f"Current ACLs for resource `{resource}`:\n{_shown(entries)}\n")


def _described(cluster: Any, resource: Resource | None) -> Wanted:
    with in_background():
        answer = cluster.ask(ApiKey.DESCRIBE_ACLS, "describeAcls", **_resource_filter(resource), **_ANYONE)
    check(answer)
    return {
        Resource(RESOURCES[each.resource_type], each.resource_name, PATTERNS[each.pattern_type]): [
            _entry(one) for one in each.acls
        ]
        for each in answer.resources
    }


def _resource_filter(resource: Resource | None) -> dict[str, Any]:
    return {
        "resource_type_filter": _ANY if resource is None else RESOURCES.index(resource.kind),
        "resource_name_filter": None if resource is None else resource.name,
        "pattern_type_filter": _ANY if resource is None else PATTERNS.index(resource.pattern),
    }


# --- command line


def _pattern(options: Options) -> str:
    return pattern_of(options.value("resource-pattern-type", "LITERAL") or "")


def _resources(options: Options) -> list[Resource]:
    pattern = _pattern(options)
    found = [Resource("TOPIC", name.strip(), pattern) for name in options.values("topic")]
    if pattern == "LITERAL" and (options.has("cluster") or options.has("idempotent")):
        found.append(CLUSTER)
    for flag, kind in _RESOURCES.items():
        if flag != "topic":
            found += [Resource(kind, name.strip(), pattern) for name in options.values(flag)]
    return list(dict.fromkeys(found))


def _wanted(options: Options) -> Wanted:
    found: Wanted = {}
    resources = _resources(options)
    if not resources:
        options.usage_error(
            "Specify a resource: --topic, --group, --cluster, --transactional-id, --delegation-token or "
            "--user-principal"
        )
    if not options.has("producer") and not options.has("consumer"):
        operations = [operation_of(text.strip()) for text in options.values("operation")]
        entries = _entries(options, operations or ["ALL"])
        found = {resource: entries for resource in resources}
    if options.has("producer"):
        for resource in resources:
            if resource.kind == "TOPIC":
                found[resource] = _entries(options, ["WRITE", "DESCRIBE", "CREATE"])
            elif resource.kind == "TRANSACTIONAL_ID":
                found[resource] = _entries(options, ["WRITE", "DESCRIBE"])
        if options.has("idempotent"):
            found[CLUSTER] = _entries(options, ["IDEMPOTENT_WRITE"])
    if options.has("consumer"):
        for resource in resources:
            if resource.kind in ("TOPIC", "GROUP"):
                operations = ["READ", "DESCRIBE"] if resource.kind == "TOPIC" else ["READ"]
                both = _entries(options, operations) + found.get(resource, [])
                found[resource] = list(dict.fromkeys(both))
    for resource, entries in found.items():
        supported = SUPPORTED[resource.kind].split()
        if any(entry.operation not in supported for entry in entries):
            options.usage_error(
                f"ResourceType {resource.kind} only supports operations [{', '.join(supported)}]"
            )
    return found


def _entries(options: Options, operations: list[str]) -> list[Entry]:
    found = []
    for word, permission in (("allow", "ALLOW"), ("deny", "DENY")):
        principals = [principal_of(text.strip()) for text in options.values(f"{word}-principal")]
        hosts = [text.strip() for text in options.values(f"{word}-host")] or ["*"]
        found += [
            Entry(principal, host, operation, permission)
            for principal in principals
            for operation in operations
            for host in hosts
        ]
    return list(dict.fromkeys(found))


# --- helpers


def _numbers(entry: Entry) -> dict[str, Any]:
    return {
        "operation": OPERATIONS.index(entry.operation),
        "permission_type": PERMISSIONS.index(entry.permission),
    }


def _entry(acl: Any) -> Entry:
    operation = OPERATIONS[acl.operation]
    return Entry(acl.principal, acl.host, operation, PERMISSIONS[acl.permission_type])


def _shown(entries: list[Entry]) -> str:
    return "\n".join(f"\t{entry}" for entry in entries)


def _as_json(found: Wanted) -> list[dict[str, Any]]:
    return [
        {
            "resource_type": resource.kind,
            "name": resource.name,
            "pattern_type": resource.pattern,
            "entries": [entry._asdict() for entry in entries],
        }
        for resource, entries in found.items()
    ]
