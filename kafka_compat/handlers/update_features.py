"""UpdateFeatures (API key 57): reject all changes, with Kafka's messages, because Kafka 3.9 with ZooKeeper
has no features to finalize (KIP-584). Served only by the controller. Version 2 reports only the first error,
as Kafka 4 does.
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
_FIRST_VERSION_OF_ONE_ERROR = 2


@handler(0, 2)
def update_features(ctx: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    require_cluster(ctx, Operation.ALTER)
    if ctx.services.metadata.controller_id != ctx.services.metadata.local_id:
        return UpdateFeaturesResponse(error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_THE_CONTROLLER)
    if ctx.api_version >= _FIRST_VERSION_OF_ONE_ERROR:
        if not request.feature_updates:
            return UpdateFeaturesResponse(error_message=None)
        return UpdateFeaturesResponse(
            error_code=ErrorCode.INVALID_UPDATE_VERSION,
            error_message=_first_problem(request.feature_updates[0], ctx.services.metadata.local_id),
        )
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(
                feature=update.feature, error_code=ErrorCode.INVALID_REQUEST, error_message=_problem(update)
            )
            for update in request.feature_updates
        ],
    )


def _first_problem(update: FeatureUpdateKey, controller_id: int) -> str:
    if update.upgrade_type not in _KINDS:
        reason = "The controller does not support the given upgrade type."
    elif update.max_version_level < 0:
        reason = "A feature version cannot be less than 0."
    elif update.max_version_level == 0:
        reason = f"Feature {update.feature} not found."
    else:
        reason = f"Local controller {controller_id} does not support this feature."
    return (
        "The update failed for all features since the following feature had an error: "
        f"Invalid update version {update.max_version_level} for feature {update.feature}. {reason}"
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
