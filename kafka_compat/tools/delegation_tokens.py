"""kafka-delegation-tokens: create, renew, expire and describe delegation tokens (KIP-48)."""

import base64
import binascii
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from kafka_compat.client.cluster import Cluster
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.tools import show
from kafka_compat.tools.admin import cluster_of
from kafka_compat.tools.failure import check, illegal_argument, of_client, report
from kafka_compat.tools.options import Options

_COMMAND: Final = "delegation-tokens"
_REQUIRED: Final = {
    "create": ("max-life-time-period",),
    "renew": ("hmac", "renew-time-period"),
    "expire": ("hmac", "expiry-time-period"),
    "describe": (),
}
"""Maps the actions to the flags that they require."""
_FORBIDDEN: Final = {
    "create": ("hmac", "renew-time-period", "expiry-time-period"),
    "renew": ("renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal"),
    "expire": ("renewer-principal", "max-life-time-period", "renew-time-period", "owner-principal"),
    "describe": (
        *("renewer-principal", "max-life-time-period", "hmac"),
        *("renew-time-period", "expiry-time-period"),
    ),
}
_WIDTHS: Final = (15, 30, 15, 15, 25, 15, 15, 15)
_HEADINGS: Final = (
    *("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS"),
    *("ISSUEDATE", "EXPIRYDATE", "MAXDATE"),
)


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    try:
        options = Options(_COMMAND, arguments)
        action = _checked(options)
        with cluster_of(options) as cluster:
            _ACTIONS[action](cluster, options)
    except Exception as error:
        return report(of_client(error))
    return 0


def _checked(options: Options) -> str:
    """Return the action. Exits with the help if the flags are invalid."""
    options.exit_for_help()
    actions = [action for action in _REQUIRED if options.has(action)]
    if len(actions) != 1:
        options.usage_error("Specify one action: --create, --renew, --expire or --describe")
    (action,) = actions
    options.require("bootstrap-server", "command-config", *_REQUIRED[action])
    options.forbid(action, *_FORBIDDEN[action])
    return action


def _principals(options: Options, flag: str) -> list[tuple[str, str]]:
    found = []
    for text in options.values(flag):
        kind, colon, name = text.strip().partition(":")
        if not colon or not kind:
            raise illegal_argument(f"expected principalType:principalName but got {text}")
        found.append((kind, name))
    return found


def _create(cluster: Cluster, options: Options) -> None:
    from kafka_compat.protocol.messages.create_delegation_token import CreatableRenewers

    renewers = _principals(options, "renewer-principal")
    lifetime_ms = _period_ms(options, "max-life-time-period")
    request: dict[str, Any] = {
        "renewers": [CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in renewers],
        "max_lifetime_ms": lifetime_ms,
    }
    owners = _principals(options, "owner-principal")
    if owners:
        request["owner_principal_type"], request["owner_principal_name"] = owners[0]
    answer = cluster.ask_controller(ApiKey.CREATE_DELEGATION_TOKEN, "createDelegationToken", **request)
    check(answer)
    row = _row(
        answer, answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms, renewers
    )
    if options.as_json:
        show.as_json(row)
        return
    print(f"Creating a token with renewers {_listed(renewers)} and a maximum lifetime of {lifetime_ms} ms")
    print(f"Created the token {answer.token_id}\n")
    _print([row])


def _renew(cluster: Cluster, options: Options) -> None:
    period_ms = _period_ms(options, "renew-time-period")
    answer = cluster.ask_controller(
        ApiKey.RENEW_DELEGATION_TOKEN,
        "renewDelegationToken",
        hmac=_hmac(options),
        renew_period_ms=period_ms,
    )
    _ended(answer, options, f"Renewing the token {options.given('hmac')} for {period_ms} ms", "Renewed")


def _expire(cluster: Cluster, options: Options) -> None:
    period_ms = _period_ms(options, "expiry-time-period")
    answer = cluster.ask_controller(
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        "expireDelegationToken",
        hmac=_hmac(options),
        expiry_time_period_ms=period_ms,
    )
    _ended(answer, options, f"Expiring the token {options.given('hmac')} in {period_ms} ms", "Changed")


def _ended(answer: Any, options: Options, doing: str, done: str) -> None:
    if not options.as_json:
        print(doing)
    check(answer)
    date = _date(answer.expiry_timestamp_ms)
    if options.as_json:
        show.as_json({"expires_ms": answer.expiry_timestamp_ms})
    else:
        print(f"{done} the token, which expires at {date}")


def _describe(cluster: Cluster, options: Options) -> None:
    from kafka_compat.protocol.messages.describe_delegation_token import DescribeDelegationTokenOwner

    owners = _principals(options, "owner-principal")
    answer = cluster.ask(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        "describeDelegationToken",
        owners=[
            DescribeDelegationTokenOwner(principal_type=kind, principal_name=name) for kind, name in owners
        ],
    )
    check(answer)
    rows = [
        _row(
            token,
            token.issue_timestamp,
            token.expiry_timestamp,
            token.max_timestamp,
            [(each.principal_type, each.principal_name) for each in token.renewers],
        )
        for token in answer.tokens
    ]
    if options.as_json:
        show.as_json(rows)
        return
    print(f"Describing the tokens of {_listed(owners) if owners else 'the current user'}")
    print(f"Tokens: {len(rows)}")
    _print(rows)


def _period_ms(options: Options, flag: str) -> int:
    period_ms = options.integer(flag, 64)
    if period_ms is None:
        raise illegal_argument(f"--{flag} requires a number of milliseconds")
    return period_ms


def _hmac(options: Options) -> bytes:
    try:
        return base64.b64decode(options.given("hmac"), validate=True)
    except binascii.Error as error:
        raise illegal_argument(f"--hmac is not in base64: {error}") from None


def _row(
    token: Any, issued_ms: int, expires_ms: int, latest_ms: int, renewers: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    owner = f"{token.principal_type}:{token.principal_name}"
    requester = f"{token.token_requester_principal_type}:{token.token_requester_principal_name}"
    return {
        "token_id": token.token_id,
        "hmac": base64.b64encode(token.hmac).decode(),
        "owner": owner,
        # Brokers before Kafka 3.3 do not report the requester.
        "requester": owner if requester == ":" else requester,
        "renewers": [f"{kind}:{name}" for kind, name in renewers],
        "issued_ms": issued_ms,
        "expires_ms": expires_ms,
        "max_ms": latest_ms,
    }


def _print(rows: Sequence[dict[str, Any]]) -> None:
    _print_row(_HEADINGS)
    for row in rows:
        dates = (_date(row[name]) for name in ("issued_ms", "expires_ms", "max_ms"))
        print()
        renewers = f"[{', '.join(row['renewers'])}]"
        _print_row((row["token_id"], row["hmac"], row["owner"], row["requester"], renewers, *dates))


def _print_row(cells: Sequence[str]) -> None:
    print(" ".join(f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)))


def _listed(principals: Sequence[tuple[str, str]]) -> str:
    return f"[{', '.join(f'{kind}:{name}' for kind, name in principals)}]"


def _date(timestamp_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(timestamp_ms / 1000))


_ACTIONS: Final[dict[str, Callable[[Cluster, Options], None]]] = {
    "create": _create,
    "renew": _renew,
    "expire": _expire,
    "describe": _describe,
}
