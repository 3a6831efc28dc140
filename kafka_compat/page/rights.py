"""What the page may do: as much as a client with its principal, from the address of the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.http.routes import BadCall
from kafka_compat.security.authorizer import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from kafka_compat.security.authorizer import Authorizer
    from kafka_compat.security.principal import Principal

_FORBIDDEN = 403


class Rights:
    """Those of one visit. Without an authorizer everybody may do everything."""

    def __init__(self, authorizer: Authorizer | None, principal: Principal, host: str) -> None:
        self._authorizer = authorizer
        self.principal = principal
        self.host = host

    def may(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether this is allowed; for what is left out where it is not."""
        return self._authorizer is None or self._authorizer.allows(
            self.principal, self.host, operation, resource_type, name, logged=False
        )

    def may_see_topic(self, name: str) -> bool:
        return self.may(Operation.DESCRIBE, ResourceType.TOPIC, name)

    def may_see_group(self, name: str) -> bool:
        return self.may(Operation.DESCRIBE, ResourceType.GROUP, name)

    @property
    def may_see_cluster(self) -> bool:
        return self.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)

    def require(self, operation: Operation, resource_type: ResourceType, name: str) -> None:
        """Raises BadCall where it is not allowed."""
        if self._authorizer is not None and not self._authorizer.allows(
            self.principal, self.host, operation, resource_type, name
        ):
            what = resource_type.name.lower().replace("_", " ")
            raise BadCall(
                f"{self.principal} from {self.host} may not {operation.name} the {what} {name}: give it an "
                "ACL, or set kafka.compat.http.page.principal to somebody who may",
                _FORBIDDEN,
            )

    def require_cluster(self, operation: Operation) -> None:
        """The same for the cluster."""
        self.require(operation, ResourceType.CLUSTER, CLUSTER_NAME)
