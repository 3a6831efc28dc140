"""Compile .proto files with protoc, for registries that do not return serialized descriptors.

Confluent's registry and Karapace return descriptors (`?format=serialized`). Apicurio 3.3 fails to do so for
files with a package. protoc is taken from the package grpcio-tools.
"""

import base64
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from kafka_compat.decoding.plain import NotSo

_NAME: Final = "the_schema.proto"
_OWN: Final = "google/protobuf/"
_TIMEOUT_S: Final = 60.0
_ERROR_LINES: Final = 3


def compiled(text: str, references: Mapping[str, str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return a .proto file and the files that it imports (`references`: text by import name), dependencies
    first, as serialized FileDescriptorProtos in base64. Raises NotSo if this fails.
    """
    for name in references:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise NotSo(f"it references {name!r}, which is not the name of a file")
    if importlib.util.find_spec("grpc_tools") is None:
        raise NotSo(
            "the registry returns it as a .proto file, which requires a compiler: pip install grpcio-tools"
        )
    from google.protobuf import descriptor_pb2

    with tempfile.TemporaryDirectory(prefix="kafka-compat-proto-") as scratch:
        root = Path(scratch)
        for name, content in {**references, _NAME: text}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        output = root / ".descriptors"
        _run(root, output)
        files = descriptor_pb2.FileDescriptorSet.FromString(output.read_bytes()).file
    found = {
        file.name: base64.b64encode(file.SerializeToString()).decode()
        for file in files
        if not file.name.startswith(_OWN)
    }
    main = found.pop(_NAME)
    return main, tuple(found.items())


def _run(root: Path, output: Path) -> None:
    import grpc_tools

    # A process of its own: protoc prints errors to the process's stderr.
    include = Path(grpc_tools.__path__[0]) / "_proto"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{root}", f"-I{include}", "--include_imports"]
    try:
        done = subprocess.run(
            [*command, f"--descriptor_set_out={output}", _NAME],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotSo(f"protoc does not run: {error}") from None
    if done.returncode != 0:
        raise NotSo(f"protoc: {' '.join(done.stderr.strip().splitlines()[:_ERROR_LINES])}")
