"""ApiVersions (API key 18): the APIs and versions that this broker serves, as declared by its handlers.

The response to an unknown version of the request is in version 0, with UNSUPPORTED_VERSION (KIP-511). In
version 3 and later, clients state their software, and the response includes the supported and finalized
features (KIP-584). In version 5 and later, clients name the broker that they expect at this address. A
different broker rejects them, so that they look up the brokers again (KIP-1242).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.api.caller import UNKNOWN_SOFTWARE
from kafka_compat.api.handler import handler
from kafka_compat.errors import ErrorCode
from kafka_compat.metadata.emulation import METADATA_VERSION
from kafka_compat.metadata.features import SUPPORTED
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from kafka_compat.api.listener_context import ListenerContext

_LOWEST_LEVEL: Final = 0
_FIRST_VERSION_OF_LOWEST_LEVEL: Final = 4
_ANY_NODE: Final = -1
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@handler(0, 5)
def api_versions(ctx: ListenerContext, request: ApiVersionsRequest | None) -> ApiVersionsResponse:
    """Return the served APIs and versions. `request` is None if its version is not supported."""
    emulation = ctx.services.emulation
    if emulation is not None and not emulation.applies(ctx.caller.listener_name):
        emulation = None
    apis: Mapping[Any, tuple[int, int]] = ctx.services.served if emulation is None else emulation.apis
    if request is None:
        if emulation is not None and not emulation.lists_versions:
            return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        low, high = apis[ApiKey.API_VERSIONS]
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=low, max_version=high)],
        )
    session = ctx.caller.session
    if ctx.api_version >= 3:
        name, version = request.client_software_name, request.client_software_version
        names_cluster, names_node = request.cluster_id is not None, request.node_id != _ANY_NODE
        if names_cluster != names_node or not _SOFTWARE.fullmatch(name) or not _SOFTWARE.fullmatch(version):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        session.is_software(ctx.client_id, name, version)
    else:
        session.is_software(ctx.client_id, UNKNOWN_SOFTWARE, UNKNOWN_SOFTWARE)
    metadata = ctx.services.metadata
    authentication = session.authentication
    if authentication is not None and not authentication.exchange.is_complete:
        authentication.exchange.versions_reported()
    elif request.cluster_id is not None and (
        (request.cluster_id, request.node_id) != (metadata.cluster_id, metadata.local_id)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    response = ApiVersionsResponse(finalized_features_epoch=metadata.finalized_features_epoch)
    key = (ctx.api_version, response.finalized_features_epoch, emulation is not None)
    repeated: ApiVersionsResponse | None = ctx.repeated(key)
    if repeated is not None:
        return repeated
    response.api_keys = [
        ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in apis.items()
    ]
    levels = dict(metadata.feature_levels)
    if emulation is None:
        features = {name: (_LOWEST_LEVEL, highest) for name, highest in SUPPORTED.items()}
    else:
        features = emulation.features
        if METADATA_VERSION in features:
            levels[METADATA_VERSION] = features[METADATA_VERSION][1]
    response.supported_features = [
        SupportedFeatureKey(name=name, min_version=low, max_version=high)
        for name, (low, high) in features.items()
        # Hide these features from older clients, which cannot parse a minimum version of 0.
        if low > _LOWEST_LEVEL or ctx.api_version >= _FIRST_VERSION_OF_LOWEST_LEVEL
    ]
    response.finalized_features = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in levels.items()
        if level > _LOWEST_LEVEL
    ]
    ctx.repeat(key, response)
    return response
