"""DeleteShareGroupOffsets (API key 92): delete the offsets of a share group without members (KIP-932)."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.error_mapping import readable
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.share.offset_changes import MESSAGES, DeletedTopic, OffsetsResult
from kafka_compat.handlers.authorization import Denied, require
from kafka_compat.handlers.feature_gates import require_level
from kafka_compat.long_work import Steps
from kafka_compat.metadata.features import SHARE_VERSION
from kafka_compat.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kafka_compat.security.authorizer import Operation, ResourceType


@handler(0, 0)
def delete_share_group_offsets(
    ctx: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> Steps[DeleteShareGroupOffsetsResponse | Deferred]:
    require_level(ctx, SHARE_VERSION)
    require(ctx, Operation.DELETE, ResourceType.GROUP, request.group_id)
    denied = Denied(ctx, Operation.READ, ResourceType.TOPIC)
    names: list[str] = []
    refused: list[DeleteShareGroupOffsetsResponseTopic] = []
    for topic in request.topics:
        yield None
        if topic.topic_name in denied:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused.append(
                DeleteShareGroupOffsetsResponseTopic(
                    topic_name=topic.topic_name, error_code=error, error_message=MESSAGES[error]
                )
            )
        else:
            names.append(topic.topic_name)
    if request.topics and not names:
        return DeleteShareGroupOffsetsResponse(responses=refused)
    deferred = Deferred()
    ctx.services.groups.share.delete_offsets(
        request.group_id,
        names,
        lambda result: ctx.long_work.start(_response(result, refused), deferred.complete),
    )
    return deferred


def _response(
    result: OffsetsResult, refused: list[DeleteShareGroupOffsetsResponseTopic]
) -> Steps[DeleteShareGroupOffsetsResponse]:
    responses = refused
    for topic in result.topics:
        yield None
        if isinstance(topic, DeletedTopic):
            responses.append(
                DeleteShareGroupOffsetsResponseTopic(
                    topic_name=topic.name,
                    topic_id=topic.topic_id,
                    error_code=topic.error,
                    error_message=topic.message or MESSAGES.get(topic.error),
                )
            )
    return DeleteShareGroupOffsetsResponse(
        error_code=result.error,
        error_message=readable(result.message or MESSAGES.get(result.error)),
        responses=responses,
    )
