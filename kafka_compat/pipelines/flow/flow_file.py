"""Read a flow file (YAML): jobs with their settings, and every error with its line.

    settings:                     # for every job that has the setting
      bootstrap-server: 127.0.0.1:9092
    jobs:
      archive-flights:            # any name
        job: archive              # a job of `kafka-compat pipeline`
        topic: [flights, airports]
        to: ./archive

Settings are the job's options without the leading dashes. A list repeats the option; a mapping repeats it as
NAME=VALUE; true and false are for options without a value.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kafka_compat.pipelines.environment import INSTALL
from kafka_compat.pipelines.errors import NotStarted

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_BY_THE_SERVICE: Final = ("continuous", "json", "verbose", "stop-at-eof")
"""Options that the service sets itself."""


@dataclass(frozen=True, slots=True)
class Setting:
    """An option of a job. `check` returns the reason why a value is invalid, or None."""

    name: str
    takes_value: bool
    repeats: bool
    check: Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class JobKind:
    """A job of `kafka-compat pipeline`: its settings by name, and a check of a whole command line, which
    returns the error or None.
    """

    settings: Mapping[str, Setting]
    check: Callable[[Sequence[str]], str | None]


@dataclass(frozen=True, slots=True)
class FlowJob:
    """A job of a flow: its name, the job of `kafka-compat pipeline`, and that job's arguments."""

    name: str
    job: str
    arguments: tuple[str, ...]


@dataclass(slots=True)
class _Reader:
    kinds: Mapping[str, JobKind]
    continuous: bool
    guess: Callable[[str, Sequence[str]], str]
    errors: list[tuple[int, str]] = field(default_factory=list)
    directories: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The directory of each job, with the job's name and the line."""

    def error(self, node: Any, text: str) -> None:
        self.errors.append((node.start_mark.line + 1, text))


def read_flow(
    path: Path,
    kinds: Mapping[str, JobKind],
    *,
    continuous: bool,
    guess: Callable[[str, Sequence[str]], str] = lambda word, known: "",
) -> list[FlowJob]:
    """Read and check a flow file. `guess` completes the message about an unknown word.

    Raises NotStarted with one line for each error: FILE:LINE: JOB: SETTING: what is wrong.
    """
    try:
        import yaml
    except ImportError:
        raise NotStarted("PyYAML is not installed.", f"Install it with: {INSTALL}") from None
    try:
        root = yaml.compose(path.read_text(), Loader=yaml.SafeLoader)
    except OSError as error:
        raise NotStarted(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise NotStarted(f"{path} is not UTF-8: {error}.") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise NotStarted(f"{path}:{line}: not YAML: {error.problem or error.context}.") from None
    except yaml.YAMLError as error:
        raise NotStarted(f"{path}: not YAML: {error}.") from None
    reader = _Reader(kinds, continuous, guess)
    jobs = _jobs(reader, root)
    if reader.errors:
        raise NotStarted("\n".join(f"{path}:{line}: {text}" for line, text in sorted(reader.errors)))
    return jobs


def _jobs(reader: _Reader, root: Any) -> list[FlowJob]:
    import yaml

    if not isinstance(root, yaml.MappingNode):
        reader.errors.append((1, "expected `jobs:` with at least one job"))
        return []
    parts = _entries(reader, root, "")
    for name, (key, _) in parts.items():
        if name not in ("settings", "jobs"):
            reader.error(
                key, f"{name}: unknown{reader.guess(name, ['settings', 'jobs'])}; expected settings or jobs"
            )
    common = _mapping(reader, parts, "settings") if "settings" in parts else {}
    known = {name for kind in reader.kinds.values() for name in kind.settings}
    for name, (key, _) in common.items():
        if name in _BY_THE_SERVICE:
            reader.error(key, f"settings: {name}: not for the file; it is an option of `pipeline run`")
        elif name not in known:
            reader.error(key, f"settings: {name}: no job has this setting{reader.guess(name, sorted(known))}")
    if "jobs" not in parts:
        reader.error(root, "jobs: missing; expected at least one job")
        return []
    named = _mapping(reader, parts, "jobs")
    if not named and not reader.errors:
        reader.error(parts["jobs"][0], "jobs: expected at least one job")
    jobs = (_job(reader, name, key, node, common) for name, (key, node) in named.items())
    return [job for job in jobs if job is not None]


def _job(
    reader: _Reader, name: str, key: Any, node: Any, common: Mapping[str, tuple[Any, Any]]
) -> FlowJob | None:
    import yaml

    if not _NAME.fullmatch(name):
        reader.error(key, f"{name}: not a name of a job; expected letters, digits, dots, - and _")
    if not isinstance(node, yaml.MappingNode):
        reader.error(key, f"{name}: expected `job:` and the job's settings")
        return None
    own = _entries(reader, node, f"{name}: ")
    if "job" not in own:
        reader.error(key, f"{name}: job: missing; expected one of {', '.join(sorted(reader.kinds))}")
        return None
    key_of_job, node_of_job = own.pop("job")
    job = str(node_of_job.value) if isinstance(node_of_job, yaml.ScalarNode) else ""
    if job not in reader.kinds:
        guess = reader.guess(job, sorted(reader.kinds))
        expected = ", ".join(sorted(reader.kinds))
        reader.error(key_of_job, f"{name}: job: unknown job {job!r}{guess}; expected one of {expected}")
        return None
    kind = reader.kinds[job]
    if reader.continuous and "continuous" not in kind.settings:
        reader.error(key_of_job, f"{name}: job: {job} cannot run continuously; run it without --continuous")
    before = len(reader.errors)
    arguments: list[str] = []
    shared = {name: each for name, each in common.items() if name in kind.settings and name not in own}
    for setting, (key_of, node_of) in own.items():
        if setting in _BY_THE_SERVICE:
            reader.error(key_of, f"{name}: {setting}: not for the file; it is an option of `pipeline run`")
        elif setting not in kind.settings:
            guess = reader.guess(setting, sorted(kind.settings))
            reader.error(key_of, f"{name}: {setting}: {job} has no such setting{guess}")
        else:
            arguments += _arguments(reader, name, kind.settings[setting], node_of)
    for setting, (_, node_of) in shared.items():
        arguments += _arguments(reader, name, kind.settings[setting], node_of)
    if place := {**shared, **own}.get("to"):
        _require_own_directory(reader, name, *place)
    if len(reader.errors) == before and (wrong := kind.check(arguments)) is not None:
        reader.error(key, f"{name}: {wrong}")
    if reader.continuous:
        arguments.append("--continuous")
    return FlowJob(name, job, tuple(arguments))


def _require_own_directory(reader: _Reader, name: str, key: Any, node: Any) -> None:
    place = os.path.normpath(str(node.value))
    if place in reader.directories:
        other, line = reader.directories[place]
        reader.error(
            key, f"{name}: to: {place} is the directory of {other} (line {line}); each job needs its own"
        )
    reader.directories.setdefault(place, (name, key.start_mark.line + 1))


def _arguments(reader: _Reader, job: str, setting: Setting, node: Any) -> list[str]:
    """Return the command line arguments of a setting. Records an error for each invalid value."""
    import yaml

    where = f"{job}: {setting.name}"
    if not setting.takes_value:
        if _is_true(node) is None:
            reader.error(node, f"{where}: expected true or false")
        return [f"--{setting.name}"] if _is_true(node) else []
    values: list[tuple[Any, str]] = []
    if isinstance(node, yaml.ScalarNode):
        values = [(node, str(node.value))]
    elif not setting.repeats:
        reader.error(node, f"{where}: expected one value")
    elif isinstance(node, yaml.SequenceNode):
        values = [(each, str(each.value)) for each in node.value if isinstance(each, yaml.ScalarNode)]
        for each in node.value:
            if not isinstance(each, yaml.ScalarNode):
                reader.error(each, f"{where}: expected a list of values")
    elif isinstance(node, yaml.MappingNode):
        pairs = _entries(reader, node, f"{where}: ")
        values = [(each, f"{name}={each.value}") for name, (_, each) in pairs.items()]
    arguments = []
    for each, text in values:
        wrong = "expected a value" if not text else setting.check(text)
        if wrong is not None:
            reader.error(each, f"{where}: {wrong}")
        # With =, a value may begin with a dash.
        arguments.append(f"--{setting.name}={text}")
    return arguments


def _is_true(node: Any) -> bool | None:
    return {"true": True, "false": False}.get(str(node.value).lower())


def _mapping(reader: _Reader, parts: Mapping[str, tuple[Any, Any]], name: str) -> dict[str, tuple[Any, Any]]:
    import yaml

    key, node = parts[name]
    if not isinstance(node, yaml.MappingNode):
        reader.error(key, f"{name}: expected names with values")
        return {}
    return _entries(reader, node, f"{name}: " if name == "settings" else "")


def _entries(reader: _Reader, node: Any, where: str) -> dict[str, tuple[Any, Any]]:
    """Return a mapping's nodes by name. Records an error for a name that occurs twice."""
    import yaml

    found: dict[str, tuple[Any, Any]] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            reader.error(key, f"{where}expected a name")
            continue
        name = str(key.value)
        if name in found:
            line = found[name][0].start_mark.line + 1
            reader.error(key, f"{where}{name}: given twice (first on line {line})")
            continue
        found[name] = (key, value)
    return found
