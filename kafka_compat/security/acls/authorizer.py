"""ACL-based authorizer, with an audit log of its decisions (Kafka's AclAuthorizer).

The audit log is the logger `kafka.authorizer.logger`, as in Kafka. Denied operations are logged at INFO, and
allowed operations at DEBUG. Each line has Kafka's format, followed by the reason.
"""

import logging
from typing import Final

from kafka_compat.security.acls.bindings import shown
from kafka_compat.security.acls.rules import ALLOWING, Rules, Verdict
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.security.principal import Principal

audit: Final = logging.getLogger("kafka.authorizer.logger")


class AclAuthorizer:
    """An ACL-based Authorizer. See `security.authorizer.Authorizer` for the methods."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        if audit.level == logging.NOTSET:
            # Log denials, as Kafka does: its log4j.properties sets this logger to INFO.
            audit.setLevel(logging.INFO)

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        logged: bool = True,
    ) -> bool:
        verdict = self._rules.decide(principal, host, operation, resource_type, name)
        allowed = verdict in ALLOWING
        if logged and audit.isEnabledFor(logging.DEBUG if allowed else logging.INFO):
            why = verdict.value
            if verdict is Verdict.DENIED or verdict is Verdict.ALLOWED:
                grounds = self._rules.grounds(principal, host, operation, resource_type, name)
                if grounds is not None:
                    permission, who, where, pattern = grounds
                    why = f"{permission.name} for {who} from host {where} on {pattern}"
            _tell(allowed, principal, host, operation, f"{shown(resource_type)}:LITERAL:{name}", why)
        return allowed

    def allows_any(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        verdict = self._rules.decide_any(principal, host, operation, resource_type)
        allowed = verdict in ALLOWING
        if audit.isEnabledFor(logging.DEBUG if allowed else logging.INFO):
            _tell(allowed, principal, host, operation, f"any {shown(resource_type)}", verdict.value)
        return allowed


def _tell(
    allowed: bool, principal: Principal, host: str, operation: Operation, resource: str, why: str
) -> None:
    audit.log(
        logging.DEBUG if allowed else logging.INFO,
        "Principal = %s is %s Operation = %s from host = %s on resource = %s: %s",
        _in_one_line(str(principal)),
        "Allowed" if allowed else "Denied",
        shown(operation),
        host,
        _in_one_line(resource),
        _in_one_line(why),
    )


def _in_one_line(text: str) -> str:
    """Escape line breaks and invisible characters, because the logged names come from clients."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()
