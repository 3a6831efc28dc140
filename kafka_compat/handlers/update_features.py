"""UpdateFeatures (API key 57): reject all changes, with Kafka's messages, because Kafka 3.9 with ZooKeeper
has no features to finalize (KIP-584). Served only by the controller.
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import NOT_THE_CONTROLLER, ErrorCode
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kafka_compat.security.authorizer import Operation

_UPGRADE = 1
_KINDS = (1, 2, 3)


@handler(0, 1)
def update_features(ctx: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    require_cluster(ctx, Operation.ALTER)
    if ctx.services.metadata.controller_id != ctx.services.metadata.local_id:
        return UpdateFeaturesResponse(error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_THE_CONTROLLER)
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(
                feature=update.feature, error_code=ErrorCode.INVALID_REQUEST, error_message=_problem(update)
            )
            for update in request.feature_updates
        ],
    )


def _problem(update: FeatureUpdateKey) -> str:
    if not update.feature:
        return "Feature name can not be empty."
    if update.upgrade_type not in _KINDS:
        return "Received unknown upgrade type."
    if update.max_version_level < 1:
        if update.allow_downgrade or update.upgrade_type != _UPGRADE:
            return "Can not delete non-existing finalized feature."
        return (
            f"Can not provide versionLevel: {update.max_version_level} less than 1 without setting the SAFE "
            "downgradeType in the request."
        )
    return "Could not apply finalized feature update because the provided feature is not supported."
