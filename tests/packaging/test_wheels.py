"""Wheels with C extensions, and builds without a compiler. test_extras.py tests the pure wheel in normal
runs.
"""

from __future__ import annotations

import shutil
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from kafka_compat.protocol.codec import HOT_APIS
from tests.packaging import wheels
from tests.packaging.compiled_modules import compiled_modules
from tests.packaging.wheels import Installed
from tests.support import campaign
from tests.support.servers import PROJECT

pytestmark = pytest.mark.skipif(not campaign.enabled(), reason="compiles for minutes: with --campaign")


@pytest.mark.timeout(1500)
def test_the_compiled_wheel_runs_compiled_code(tmp_path: Path) -> None:
    compiled, pure = wheels.build(tmp_path / "dist")
    assert pure.name.endswith("-py3-none-any.whl")
    assert "-cp3" in compiled.name
    modules = {str(path.relative_to(PROJECT).with_suffix("")) for path in compiled_modules()}
    modules = {name if name.startswith("kafka_compat/") else f"kafka_compat/{name}" for name in modules}
    messages = {f"kafka_compat/protocol/messages/{api}" for api in HOT_APIS}
    modules |= messages | {"kafka_compat/_compiled__mypyc"}
    extensions = {name + EXTENSION_SUFFIXES[0] for name in modules}
    schemas = {f"{name}_schema.py" for name in messages}
    assert wheels.contents(compiled) - wheels.contents(pure) == extensions | schemas

    installed = Installed(tmp_path / "venv", f"kafka-compat[fast] @ file://{compiled}")
    asked = "import kafka_compat.storage.log.log as log; print(log.__file__)"
    assert installed.run(installed.python, "-c", asked).strip().endswith(".so")
    assert "Using the uvloop event loop" in installed.serve(tmp_path / "data")


@pytest.mark.timeout(600)
def test_without_a_compiler_a_pure_wheel_is_built(tmp_path: Path) -> None:
    (wheel,) = wheels.build(tmp_path / "dist", environment={"CC": "/bin/false"})
    assert wheel.name.endswith("-py3-none-any.whl")
    assert wheels.contents(wheel) == wheels.sources() | {"kafka_compat/py.typed"}
    Installed(tmp_path / "venv", f"kafka-compat @ file://{wheel}").serve(tmp_path / "data")


@pytest.mark.timeout(600)
def test_a_build_installs_its_requirements(tmp_path: Path) -> None:
    """The build uses a Python without the project's libraries, as in the image build. mypyc has succeeded if
    the compiler is called, which is missing here.
    """
    source = tmp_path / "source"
    source.mkdir()
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, source)
    for name in ("kafka_compat", "storage", "coordination"):
        shutil.copytree(PROJECT / name, source / name, symlinks=True)
    python = Installed(tmp_path / "venv").python
    line = [python, "-m", "pip", "wheel", "-v", "--no-deps", "-w", str(tmp_path / "dist"), str(source)]
    said = wheels.run(line, {"KAFKA_COMPAT_COMPILE": "1", "CC": "/bin/false"})
    assert "kafka-compat: not compiled" in said
    assert [wheel.name.endswith("-py3-none-any.whl") for wheel in (tmp_path / "dist").iterdir()] == [True]
