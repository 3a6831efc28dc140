"""kafka-features: describe, upgrade and downgrade the finalized features of a KRaft cluster.

The command line follows argparse4j, with flags before and after a subcommand.
"""

import sys
from typing import Any, Final, NoReturn

from kafka_compat.errors import KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.tools import show
from kafka_compat.tools.admin import TIMEOUT_MS, connected, settings_in
from kafka_compat.tools.failure import Failure, failure_of, illegal_argument, of_client
from kafka_compat.tools.options import help_of

_FIRST: Final = 7
_RELEASES: Final = (
    "3.3-IV3",
    "3.4-IV0",
    "3.5-IV0",
    "3.5-IV1",
    "3.5-IV2",
    "3.6-IV0",
    "3.6-IV1",
    "3.6-IV2",
    "3.7-IV0",
    "3.7-IV1",
    "3.7-IV2",
    "3.7-IV3",
    "3.7-IV4",
    "3.8-IV0",
    "3.9-IV0",
    "4.0-IV0",
    "4.0-IV1",
    "4.0-IV2",
    "4.0-IV3",
    "4.1-IV0",
    "4.1-IV1",
    "4.2-IV0",
    "4.2-IV1",
    "4.3-IV0",
    "4.4-IV0",
)
"""Releases of the metadata.version levels, starting with level _FIRST."""

_LATER: Final = ("4.4-IV1", "4.4-IV2", "4.5-IV0")
"""Releases of the following levels, which only Kafka 4.4 and newer know: `describe` shows their names."""

PRODUCTION: Final = "4.3-IV0"
"""The last release whose level Kafka 4.3 supports without unstable features."""

_FEATURES: Final = {
    "kraft.version": (1, 21),
    "transaction.version": (2, 24),
    "group.version": (1, 22),
    "eligible.leader.replicas.version": (1, 26),
    "share.version": (1, 28),
    "streams.version": (1, 29),
}
"""Each feature's highest level, and the lowest metadata.version with which new clusters use the feature."""

_NEEDS: Final = {("eligible.leader.replicas.version", 1): {"metadata.version": 23}}


def name_of(level: int) -> str | None:
    """Return the release of a metadata.version level, or None if the level is unknown."""
    names = (*_RELEASES, *_LATER)
    index = level - _FIRST
    return names[index] if 0 <= index < len(names) else None


def level_of(release: str) -> int:
    """Return the level of a release (3.9-IV0, or 3.9 for its last level). Raises Failure if it is unknown."""
    newest = _RELEASES.index(PRODUCTION)
    last = {name.partition("-")[0]: name for name in _RELEASES[: newest + 1]}
    name = last.get(release, release)
    if name not in _RELEASES:
        known = ", ".join(_RELEASES)
        raise illegal_argument(
            f"Unknown metadata.version '{release}'. Supported metadata.version are: {known}"
        )
    return _FIRST + _RELEASES.index(name)


def of_release(level: int) -> dict[str, int]:
    """Return the levels of all other features in a new cluster with this metadata.version level."""
    return {name: highest if level >= since else 0 for name, (highest, since) in _FEATURES.items()}


def dependencies_of(name: str, level: int) -> dict[str, int]:
    """Return the levels of other features that this level requires. Raises Failure if it is unknown."""
    if name not in _FEATURES:
        raise Failure("org.apache.kafka.tools.TerseException", f"Unknown feature: {name}")
    if not 0 <= level <= _FEATURES[name][0]:
        raise illegal_argument(f"No feature:{name} with feature level {level}")
    return _NEEDS.get((name, level), {})


_METADATA: Final = "metadata.version"
_BEFORE: Final = {
    "--bootstrap-server": True,
    "--bootstrap-controller": True,
    "--command-config": True,
    "--json": False,
}
_CHANGES: Final = {"--feature": True, "--dry-run": False, "--json": False}
_AFTER: Final = {
    "describe": {"--node-id": True, "--json": False},
    "upgrade": {"--metadata": True, "--release-version": True, **_CHANGES},
    "downgrade": {"--metadata": True, "--release-version": True, "--unsafe": False, **_CHANGES},
    "disable": {"--unsafe": False, **_CHANGES},
    "version-mapping": {"--release-version": True, "--json": False},
    "feature-dependencies": {"--feature": True, "--json": False},
}
"""Flags of each command. The value is True for a flag with an argument."""

_ASK_NOBODY: Final = ("version-mapping", "feature-dependencies")
_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3

Given = dict[str, list[str]]


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    command, given = _parsed(arguments)
    try:
        if command in _ASK_NOBODY:
            (_version_mapping if command == "version-mapping" else _feature_dependencies)(given)
            return 0
        if "--bootstrap-controller" in given:
            text = "--bootstrap-controller is not supported by this command: give --bootstrap-server"
            raise Failure("java.lang.IllegalArgumentException", text)
        settings = settings_in(given["--command-config"][-1]) if "--command-config" in given else {}
        if "--bootstrap-server" not in given:
            _refuse("Specify --bootstrap-controller or --bootstrap-server.")
        with connected(given["--bootstrap-server"][-1], settings) as cluster:
            if command == "describe":
                _describe(cluster, given)
            else:
                _update(cluster, command, given)
        return 0
    except Exception as error:
        print(of_client(error).message, file=sys.stderr)
    return 1


# --- command line


def _parsed(arguments: list[str]) -> tuple[str, Given]:
    command = ""
    given: Given = {}
    rest = list(reversed(arguments))
    while rest:
        word = rest.pop()
        if word in ("-h", "--help"):
            print("\n".join(help_of(f"features-{command}" if command else "features")))
            sys.exit(0)
        flag, equals, value = word.partition("=")
        flags = _AFTER[command] if command else _BEFORE
        if flag in flags:
            if flags[flag] and not equals:
                if not rest or rest[-1].startswith("-"):
                    _refuse(f"argument {flag}: expected one argument")
                value = rest.pop()
            if flag == "--node-id" and not value.isdecimal():
                why = f'(For input string: "{value}")'
                _refuse(f"argument {flag}: could not convert '{value}' to Integer {why}")
            given.setdefault(flag, []).append(value)
            other = {"--bootstrap-server", "--bootstrap-controller"} & {*given} - {flag}
            if other and flag.startswith("--bootstrap"):
                _refuse(f"argument {flag}: not allowed with argument {other.pop()}")
        elif word.startswith("-") or command:
            _refuse(f"unrecognized arguments: '{word}'")
        elif word not in _AFTER:
            choices = ", ".join(f"'{each}'" for each in _AFTER)
            _refuse(f"invalid choice: '{word}' (choose from {choices})")
        else:
            command = word
    if not command:
        _refuse("too few arguments")
    if command == "feature-dependencies" and "--feature" not in given:
        _refuse("argument --feature is required")
    return command, given


def _refuse(text: str) -> NoReturn:
    print(f"Command line error: {text}. Type --help for help.", end="", file=sys.stderr)
    sys.exit(1)


# --- commands


def _describe(cluster: Any, given: Given) -> None:
    request = {"client_software_name": "kafka-compat", "client_software_version": "1"}
    call = "describeFeatures"
    if "--node-id" in given:
        answer = cluster.ask_broker(int(given["--node-id"][-1]), ApiKey.API_VERSIONS, call, **request)
    else:
        answer = cluster.ask(ApiKey.API_VERSIONS, call, **request)
    agreed = {each.name: each.max_version_level for each in answer.finalized_features}
    epoch = answer.finalized_features_epoch
    found = sorted(answer.supported_features, key=lambda each: str(each.name))
    if "--json" in given:
        show.as_json(
            [
                {
                    "feature": each.name,
                    "min": each.min_version,
                    "max": each.max_version,
                    "finalized": agreed.get(each.name, 0),
                    "epoch": epoch if epoch >= 0 else None,
                }
                for each in found
            ]
        )
        return
    for each in found:
        levels = (each.min_version, each.max_version, agreed.get(each.name, 0))
        lowest, highest, level = (_level(each.name, number) for number in levels)
        print(
            f"Feature: {each.name:<40}  SupportedMinVersion: {lowest:<15}  SupportedMaxVersion: {highest:<15}"
            f"  FinalizedVersionLevel: {level:<15}  Epoch: {epoch if epoch >= 0 else '-'}"
        )


def _level(feature: str, level: int) -> str:
    return (name_of(level) or f"UNKNOWN {level}") if feature == _METADATA else str(level)


def _wanted(command: str, given: Given) -> dict[str, int]:
    found: dict[str, int] = {}
    release = given.get("--release-version", [])[-1:]
    if release and ("--metadata" in given or "--feature" in given):
        raise _terse("`release-version` excludes other feature flags.")
    for text in release:
        level = level_of(text)
        found = {_METADATA: level}
        # For an upgrade, omit zeros: a feature that is unknown at this level cannot be set to 0.
        found |= {name: each for name, each in of_release(level).items() if each or command != "upgrade"}
    for text in given.get("--metadata", [])[-1:]:
        print(" `metadata` is deprecated.")
        found[_METADATA] = level_of(text)
    for text in given.get("--feature", []):
        name, level = (text, 0) if command == "disable" else _feature(text)
        if name in found:
            raise _terse(f"Feature {name} was specified more than once.")
        found[name] = level
    if not found:
        raise _terse(f"Specify a feature to {command}")
    for level in found.values():
        # Like Kafka's admin client, check the level before sending a request.
        if level < 0:
            raise illegal_argument("The level of a feature must not be negative.")
        if level < 1 and command == "upgrade":
            raise illegal_argument(f"An upgrade to level {level} is not possible: use downgrade or disable.")
    return found


def _feature(text: str) -> tuple[str, int]:
    name, equals, level = (part.strip() for part in text.partition("="))
    if not equals:
        raise _terse(f"Invalid feature {text}: expected feature=level.")
    if not level.removeprefix("-").isdecimal() or not -(1 << 15) <= int(level) < 1 << 15:
        raise _terse(f"Invalid feature {text}: the level {level} is not a number from -32768 to 32767.")
    return name, int(level)


def _version_mapping(given: Given) -> None:
    release = given.get("--release-version", [PRODUCTION])[-1]
    level = level_of(release)
    found = of_release(level)
    if "--json" in given:
        show.as_json({_METADATA: level, **found})
        return
    print(f"{_METADATA}={level} ({release})")
    for name, each in found.items():
        print(f"{name}={each}")


def _feature_dependencies(given: Given) -> None:
    found: dict[str, tuple[int, str, dict[str, int]]] = {}
    for text in given["--feature"]:
        name, level = _feature(text)
        if name == _METADATA:
            release = name_of(level)
            if release is None:
                raise _terse(f"Unknown metadata.version {level}")
            found[name] = level, f" ({release})", {}
        else:
            found[name] = level, "", dependencies_of(name, level)
        if "--json" not in given:
            _tell_dependencies(name, *found[name])
    if "--json" in given:
        show.as_json({name: {"level": level, "requires": needs} for name, (level, _, needs) in found.items()})


def _tell_dependencies(name: str, level: int, release: str, needs: dict[str, int]) -> None:
    if not needs:
        print(f"{name}={level}{release} has no dependencies.")
        return
    print(f"{name}={level} requires:")
    for other, each in needs.items():
        print(f"    {other}={each}" + (f" ({name_of(each)})" if other == _METADATA else ""))


def _terse(text: str) -> Failure:
    return Failure("org.apache.kafka.tools.TerseException", text)


def _update(cluster: Any, command: str, given: Given) -> None:
    from kafka_compat.protocol.messages.update_features import FeatureUpdateKey

    wanted = _wanted(command, given)
    dry = "--dry-run" in given
    kind = _UNSAFE_DOWNGRADE if "--unsafe" in given else _SAFE_DOWNGRADE
    errors: dict[str, Failure] = {}
    try:
        answer = cluster.ask_controller(
            ApiKey.UPDATE_FEATURES,
            "updateFeatures",
            timeout_ms=TIMEOUT_MS,
            validate_only=dry,
            feature_updates=[
                FeatureUpdateKey(
                    feature=name,
                    max_version_level=level,
                    allow_downgrade=command != "upgrade",
                    upgrade_type=_UPGRADE if command == "upgrade" else kind,
                )
                for name, level in wanted.items()
            ],
        )
    except KafkaError as error:
        errors = dict.fromkeys(wanted, of_client(error))
    else:
        if answer.error_code:
            errors = dict.fromkeys(wanted, failure_of(answer.error_code, answer.error_message))
        for result in answer.results:
            if result.error_code:
                errors[result.feature] = failure_of(result.error_code, result.error_message)
    if "--json" in given:
        show.as_json({name: str(errors[name].message) if name in errors else None for name in sorted(wanted)})
    else:
        for name in sorted(wanted):
            print(_outcome(command, name, wanted[name], dry, errors.get(name)))
    if errors:
        raise _terse(f"{len(errors)} out of {len(wanted)} operation(s) failed.")


def _outcome(command: str, name: str, level: int, dry: bool, error: Failure | None) -> str:
    if error is not None:
        what = f"disable {name}" if command == "disable" else f"{command} {name} to {level}"
        return f"{'Can not' if dry else 'Could not'} {what}. {error.message}"
    done = "disabled." if command == "disable" else f"{command}d to {level}."
    return f"{name}{' can be ' if dry else ' was '}{done}"
