"""ListGroups (API key 16): return the groups that this broker coordinates.

Version 4 adds a filter for states (KIP-518), and version 5 adds a filter for types (KIP-848).
"""

from collections.abc import Iterable

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.handlers.authorization import Denied, cluster_allows
from kafka_compat.long_work import Steps, batched, gathered
from kafka_compat.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kafka_compat.security.authorizer import Operation, ResourceType


@handler(0, 5)
def list_groups(ctx: RequestContext, request: ListGroupsRequest) -> Steps[ListGroupsResponse]:
    states = yield from _lowercase(request.states_filter)
    types = yield from _lowercase(request.types_filter)
    error, groups = yield from ctx.services.groups.list_groups_in_steps(states, types)
    if not cluster_allows(ctx, Operation.DESCRIBE, logged=False):
        denied = Denied(ctx, Operation.DESCRIBE, ResourceType.GROUP, logged=False)
        groups = yield from gathered(group for group in groups if group.group_id not in denied)
    listed = yield from gathered(
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state,
            group_type=group.type,
        )
        for group in groups
    )
    return ListGroupsResponse(error_code=error, groups=listed)


def _lowercase(names: Iterable[str]) -> Steps[set[str]]:
    """Return the names of a filter, which ignores case, in lower case."""
    found: set[str] = set()
    for some in batched(names):
        found.update(map(str.lower, some))
        yield None
    return found
