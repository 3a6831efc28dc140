"""UpdateFeatures (API key 57): change the finalized levels of features (KIP-584), with the rules of Apache
Kafka 4.4. Served only by the controller, to which the other brokers of a quorum forward requests.

Either all updates succeed, or none. Version 2 reports only the first error. If an older version names no
supported feature, the response is that of Apache Kafka 3.9 with ZooKeeper, which has no features.
"""

from typing import cast

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import NOT_THE_CONTROLLER, ErrorCode, KafkaError
from kafka_compat.handlers.forwarding import require_cluster_or_forwarder, response_of_controller
from kafka_compat.metadata.features import SUPPORTED, FeatureUpdate
from kafka_compat.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kafka_compat.security.authorizer import Operation

_UPGRADE = 1
_SAFE_DOWNGRADE = 2
_UPDATE_TYPES = (1, 2, 3)
_FIRST_VERSION_OF_ONE_ERROR = 2


@handler(0, 2)
async def update_features(ctx: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    require_cluster_or_forwarder(ctx, Operation.ALTER)
    forwarded = await response_of_controller(ctx, request)
    if forwarded is not None:
        return cast(UpdateFeaturesResponse, forwarded)
    if ctx.services.metadata.controller_id != ctx.services.metadata.local_id:
        return UpdateFeaturesResponse(error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_THE_CONTROLLER)
    is_old = ctx.api_version < _FIRST_VERSION_OF_ONE_ERROR
    if is_old and all(update.feature not in SUPPORTED for update in request.feature_updates):
        return _response_of_kafka_39(request)
    updates = [
        FeatureUpdate(update.feature, update.max_version_level, _update_type(ctx.api_version, update))
        for update in request.feature_updates
    ]
    membership = ctx.services.membership
    try:
        await membership.features.update(membership.store, updates, validate_only=request.validate_only)
    except KafkaError as error:
        return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)
    results = [
        UpdatableFeatureResult(feature=update.feature, error_message="NONE")
        for update in (updates if is_old else ())
    ]
    return UpdateFeaturesResponse(error_message=None, results=results)


def _update_type(api_version: int, update: FeatureUpdateKey) -> int:
    """Return the type of an update. Version 0 has only a flag that allows downgrades."""
    if api_version == 0 and update.allow_downgrade:
        return _SAFE_DOWNGRADE
    return update.upgrade_type


def _response_of_kafka_39(request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
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
    if update.upgrade_type not in _UPDATE_TYPES:
        return "Received unknown upgrade type."
    if update.max_version_level < 1:
        if update.allow_downgrade or update.upgrade_type != _UPGRADE:
            return "Can not delete non-existing finalized feature."
        return (
            f"Can not provide versionLevel: {update.max_version_level} less than 1 without setting the SAFE "
            "downgradeType in the request."
        )
    return "Could not apply finalized feature update because the provided feature is not supported."
