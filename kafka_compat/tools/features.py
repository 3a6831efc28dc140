"""kafka-features: what a cluster of KRaft has agreed on; told, raised, lowered.

Its command line is argparse4j's, with flags before and after a command of its own.
"""

from __future__ import annotations

import sys
from typing import Any, Final, NoReturn

from kafka_compat.errors import KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.tools import show
from kafka_compat.tools.admin import connected
from kafka_compat.tools.failure import Failure, failure_of, of_client
from kafka_compat.tools.options import help_of
from kafka_compat.tools.topic_names import TIMEOUT_MS

_METADATA: Final = "metadata.version"
_BEFORE: Final = {
    "--bootstrap-server": True,
    "--bootstrap-controller": True,
    "--command-config": True,
    "--json": False,
}
_AFTER: Final = {
    "describe": {"--json": False},
    "upgrade": {"--metadata": True, "--feature": True, "--dry-run": False, "--json": False},
    "downgrade": {
        "--metadata": True,
        "--feature": True,
        "--unsafe": False,
        "--dry-run": False,
        "--json": False,
    },
    "disable": {"--feature": True, "--unsafe": False, "--dry-run": False, "--json": False},
}
"""The flags of each command, and whether they have an argument."""

_LEVELS: Final = (
    "3.0-IV1",
    "3.1-IV0",
    "3.2-IV0",
    "3.3-IV0",
    "3.3-IV1",
    "3.3-IV2",
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
)
"""Of metadata.version, from 1 on."""

_BOOTSTRAP: Final = "3.3-IV0"
_PRODUCTION: Final = "3.9-IV0"
_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
_WIDTH: Final = 75

Given = dict[str, list[str]]


def run(arguments: list[str]) -> int:
    """The exit code."""
    command, given = _parsed(arguments)
    try:
        if "--bootstrap-controller" in given:
            text = "--bootstrap-controller is not supported by this command: give --bootstrap-server"
            raise Failure("java.lang.IllegalArgumentException", text)
        cluster = connected(given["--bootstrap-server"][-1], _settings(given))
        try:
            if command == "describe":
                _describe(cluster, "--json" in given)
            else:
                _update(cluster, command, given)
        finally:
            cluster.close()
        return 0
    except Exception as error:
        print(of_client(error).message, file=sys.stderr)
    return 1


def _settings(given: Given) -> dict[str, str]:
    from kafka_compat.client.way import read_settings

    return read_settings(given["--command-config"][-1]) if "--command-config" in given else {}


# --- the command line


def _parsed(arguments: list[str]) -> tuple[str, Given]:
    command = ""
    given: Given = {}
    rest = list(reversed(arguments))
    while rest:
        word = rest.pop()
        if word in ("-h", "--help"):
            print("\n".join(help_of(f"features-{command}" if command else "features")))
            sys.exit(1)
        flag, equals, value = word.partition("=")
        flags = _AFTER[command] if command else _BEFORE
        if flag in flags:
            if flags[flag] and not equals:
                if not rest or rest[-1].startswith("-"):
                    _refuse(command, f"argument {flag}: expected one argument")
                value = rest.pop()
            given.setdefault(flag, []).append(value)
            other = {"--bootstrap-server", "--bootstrap-controller"} & {*given} - {flag}
            if other and flag.startswith("--bootstrap"):
                _refuse("", f"argument {flag}: not allowed with argument {other.pop()}")
        elif word.startswith("-") or command:
            _refuse(command, f"unrecognized arguments: '{word}'")
        elif word not in _AFTER:
            choices = ", ".join(f"'{each}'" for each in _AFTER)
            _refuse("", f"invalid choice: '{word}' (choose from {choices})")
        else:
            command = word
    if not command:
        _refuse("", "too few arguments")
    if not any(flag.startswith("--bootstrap") for flag in given):
        _refuse("", "one of the arguments --bootstrap-server --bootstrap-controller is required")
    return command, given


def _refuse(command: str, text: str) -> NoReturn:
    import textwrap

    lines = help_of(f"features-{command}" if command else "features")
    end = lines.index("")
    usage = lines[:end]
    message = textwrap.wrap(f"kafka-features: error: {text}", _WIDTH)
    print("\n".join([*usage, *message]), file=sys.stderr)
    sys.exit(1)


# --- the commands


def _describe(cluster: Any, as_json: bool) -> None:
    answer = cluster.ask(
        ApiKey.API_VERSIONS,
        "describeFeatures",
        client_software_name="kafka-compat",
        client_software_version="1",
    )
    agreed = {each.name: each.max_version_level for each in answer.finalized_features}
    epoch = answer.finalized_features_epoch
    found = sorted(answer.supported_features, key=lambda each: str(each.name))
    if as_json:
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
            f"Feature: {each.name}\tSupportedMinVersion: {lowest}\tSupportedMaxVersion: {highest}"
            f"\tFinalizedVersionLevel: {level}\tEpoch: {epoch if epoch >= 0 else '-'}"
        )


def _level(feature: str, level: int) -> str:
    if feature != _METADATA:
        return str(level)
    return _LEVELS[level - 1] if 0 < level <= len(_LEVELS) else f"UNKNOWN {level}"


def _wanted(command: str, given: Given) -> dict[str, int]:
    found: dict[str, int] = {}
    for metadata in given.get("--metadata", [])[-1:]:
        if metadata not in _LEVELS:
            first, last = _LEVELS.index(_BOOTSTRAP), _LEVELS.index(_PRODUCTION)
            known = _LEVELS[first : last + 1]
            raise _terse(
                f"Unsupported metadata.version {metadata}. Supported metadata.version are {', '.join(known)}"
            )
        found[_METADATA] = _LEVELS.index(metadata) + 1
    for text in given.get("--feature", []):
        name, level = (text, 0) if command == "disable" else _feature(text)
        if name in found:
            raise _terse(f"Feature {name} was specified more than once.")
        found[name] = level
    if not found:
        raise _terse(f"You must specify at least one feature to {command}")
    return found


def _feature(text: str) -> tuple[str, int]:
    name, equals, level = (part.strip() for part in text.partition("="))
    if not equals:
        raise _terse(f"Can't parse feature=level string {text}: equals sign not found.")
    if not level.removeprefix("-").isdecimal() or not -(1 << 15) <= int(level) < 1 << 15:
        raise _terse(f"Can't parse feature=level string {text}: unable to parse {level} as a short.")
    return name, int(level)


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
            lambda answer: [answer.error_code],
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
            print(_told(command, name, wanted[name], dry, errors.get(name)))
    if errors:
        raise _terse(f"{len(errors)} out of {len(wanted)} operation(s) failed.")


def _told(command: str, name: str, level: int, dry: bool, error: Failure | None) -> str:
    if error is not None:
        what = f"disable {name}" if command == "disable" else f"{command} {name} to {level}"
        return f"{'Can not' if dry else 'Could not'} {what}. {error.message}"
    done = "disabled." if command == "disable" else f"{command}d to {level}."
    return f"{name}{' can be ' if dry else ' was '}{done}"
