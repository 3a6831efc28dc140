"""kafka-configs of users, clients and addresses: quotas, and SCRAM credentials."""

from __future__ import annotations

from typing import Any, Final

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.tools import show
from kafka_compat.tools.deserializers import java_double
from kafka_compat.tools.failure import check, illegal_argument, in_background, invalid_configuration
from kafka_compat.tools.options import Options

_ENTITIES: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
_TITLES: Final = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
_QUOTAS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
_OF_ADDRESSES: Final = ("connection_creation_rate",)
_MECHANISMS: Final = ("UNKNOWN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_ITERATIONS: Final = 4096
_SALT_BYTES: Final = 20
_NAMED, _DEFAULT, _ANY = 0, 1, 2


def describe_quotas(cluster: Any, options: Options, types: list[str], names: list[str]) -> None:
    """--describe. Raises Failure."""
    entries = _quotas(cluster, types, names)
    users = []
    if types[0] != "ips" and "clients" not in types and "" not in names:
        users = _credentials(cluster, names)
    if options.as_json:
        show.as_json(
            {
                "quotas": [
                    {
                        "entity": {one.entity_type: one.entity_name for one in entry.entity},
                        "quotas": {one.key: one.value for one in entry.values},
                    }
                    for entry in entries
                ],
                "scram": {
                    user.user: {_MECHANISMS[one.mechanism]: one.iterations for one in user.credential_infos}
                    for user in users
                },
            }
        )
        return
    for entry in entries:
        found = {one.entity_type: one.entity_name for one in entry.entity}
        whose = ", ".join(
            f"the default {title}" if found[kind] is None else f"{title} '{found[kind]}'"
            for kind, title in _TITLES.items()
            if kind in found
        )
        values = {one.key: one.value for one in entry.values}
        order = show.java_order(values, show.java_hash, sized=True)
        quotas = ", ".join(f"{key}={java_double(values[key])}" for key in order)
        print(f"Quota configs for {whose} are {quotas}")
    for user in users:
        infos = ", ".join(
            f"{_MECHANISMS[one.mechanism]}=iterations={one.iterations}" for one in user.credential_infos
        )
        print(f"SCRAM credential configs for user-principal '{user.user}' are {infos}")


def _quotas(cluster: Any, types: list[str], names: list[str]) -> list[Any]:
    from kafka_compat.protocol.messages.describe_client_quotas import ComponentData

    if len(names) > len(types):
        raise illegal_argument("More entity names specified than entity types")
    components = []
    for index, kind in enumerate(types):
        name = names[index] if index < len(names) else None
        match_type = _ANY if name is None else _NAMED if name else _DEFAULT
        components.append(
            ComponentData(entity_type=_ENTITIES[kind], match_type=match_type, match=name or None)
        )
    with in_background():
        answer = cluster.ask(
            ApiKey.DESCRIBE_CLIENT_QUOTAS, "describeClientQuotas", components=components, strict=True
        )
    check(answer)
    return list(answer.entries or ())


def _credentials(cluster: Any, names: list[str]) -> list[Any]:
    from kafka_compat.protocol.messages.describe_user_scram_credentials import UserName

    with in_background():
        answer = cluster.ask(
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            "describeUserScramCredentials",
            users=[UserName(name=name) for name in names],
        )
    check(answer)
    for result in answer.results:
        if result.error_code != ErrorCode.RESOURCE_NOT_FOUND:
            check(result)
    return [result for result in answer.results if not result.error_code]


def alter_quotas(
    cluster: Any, types: list[str], names: list[str], added: dict[str, str], deleted: list[str]
) -> None:
    """--alter. Raises Failure."""
    if types[0] == "ips":
        unknown = [name for name in [*added, *deleted] if name not in _OF_ADDRESSES]
        if unknown:
            raise illegal_argument(
                "Only connection quota configs can be added for 'ips' using --bootstrap-server. "
                f"Unexpected config names: {','.join(unknown)}"
            )
        _set_quotas(cluster, types, names, added, deleted)
        return
    _check_kinds(types, names, added, deleted)
    if any(name in _QUOTAS for name in [*added, *deleted]):
        _set_quotas(cluster, types, names, added, deleted)
    else:
        _set_credentials(cluster, names[0], added, deleted)


def _check_kinds(types: list[str], names: list[str], added: dict[str, str], deleted: list[str]) -> None:
    new = sorted(name for name in added if name not in _QUOTAS and name not in _MECHANISMS)
    old = [name for name in deleted if name not in _QUOTAS and name not in _MECHANISMS]
    scram_new = [name for name in added if name in _MECHANISMS]
    scram_old = [name for name in deleted if name in _MECHANISMS]
    if types[0] == "clients" or len(types) == 2:
        kinds, whose = "quota", "clients"
        new, old = new + scram_new, old + scram_old
    else:
        kinds, whose = "quota and SCRAM credential", "users"
    for names_, verb, title in ((new, "added", "Set"), (old, "deleted", "ArrayBuffer")):
        if names_:
            raise illegal_argument(
                f"Only {kinds} configs can be {verb} for '{whose}' using --bootstrap-server. "
                f"Unexpected config names: {title}({', '.join(names_)})"
            )
    if scram_new or scram_old:
        if "" in names:
            raise illegal_argument(
                "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials "
                "using --bootstrap-server."
            )
        if any(name in _QUOTAS for name in [*added, *deleted]):
            raise illegal_argument(
                "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using "
                "--bootstrap-server."
            )


def _set_quotas(
    cluster: Any, types: list[str], names: list[str], added: dict[str, str], deleted: list[str]
) -> None:
    from kafka_compat.protocol.messages.alter_client_quotas import EntityData, EntryData, OpData

    entries = _quotas(cluster, types, names)
    old = {one.key for one in entries[0].values} if entries else set()
    missing = [name for name in deleted if name not in old]
    if missing:
        raise invalid_configuration(f"Invalid config(s): {','.join(missing)}")
    changes = [OpData(key=name, value=_number(name, text)) for name, text in added.items()]
    changes += [OpData(key=name, value=0.0, remove=True) for name in deleted]
    entity = [
        EntityData(entity_type=_ENTITIES[kind], entity_name=name or None)
        for kind, name in zip(types, names, strict=True)
    ]
    with in_background():
        answer = cluster.ask_controller(
            ApiKey.ALTER_CLIENT_QUOTAS,
            "alterClientQuotas",
            lambda answer: [each.error_code for each in answer.entries],
            entries=[EntryData(entity=entity, ops=changes)],
        )
    for entry in answer.entries:
        check(entry)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise illegal_argument(f"Cannot parse quota configuration value for {name}: {text}") from None


def _set_credentials(cluster: Any, user: str, added: dict[str, str], deleted: list[str]) -> None:
    from kafka_compat.protocol.messages import alter_user_scram_credentials as wire

    new = []
    for mechanism, text in added.items():
        iterations, password = _credential(mechanism, text)
        salt, salted = _salted(mechanism, password, iterations)
        new.append(
            wire.ScramCredentialUpsertion(
                name=user,
                mechanism=_MECHANISMS.index(mechanism),
                iterations=iterations,
                salt=salt,
                salted_password=salted,
            )
        )
    old = [wire.ScramCredentialDeletion(name=user, mechanism=_MECHANISMS.index(name)) for name in deleted]
    with in_background():
        answer = cluster.ask_controller(
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            "alterUserScramCredentials",
            lambda answer: [each.error_code for each in answer.results],
            deletions=old,
            upsertions=new,
        )
    for result in answer.results:
        check(result)


def _credential(mechanism: str, text: str) -> tuple[int, str]:
    import re

    match = re.fullmatch(r"(?:iterations=(-?[0-9]*),)?password=(.*)", text)
    if match is None:
        raise illegal_argument(f"Invalid credential property {mechanism.replace('-', '_')}={text}")
    iterations = _ITERATIONS if match[1] in (None, "-1") else int(match[1])
    if iterations < _ITERATIONS:
        raise illegal_argument(
            f"Iterations {iterations} is less than the minimum {_ITERATIONS} required for {mechanism}"
        )
    return iterations, match[2]


def _salted(mechanism: str, password: str, iterations: int) -> tuple[bytes, bytes]:
    import hashlib
    import secrets

    salt = secrets.token_bytes(_SALT_BYTES)
    digest = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    return salt, hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
