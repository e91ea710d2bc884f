"""Stand-ins for Java: programs that answer like one, so that no test here starts a JVM."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_JAVA_PROGRAM = """\
#!{python}
import os, signal, struct, sys, time

if "-version" in sys.argv:
    sys.stderr.write({answer!r})
    sys.exit({code})

mode = open({mode_file!r}).read().strip() if os.path.exists({mode_file!r}) else "good"
length = struct.unpack(">I", sys.stdin.buffer.read(4))[0]
settings = sys.stdin.buffer.read(length).decode()
with open({seen!r}, "w") as file:
    file.write("\\n".join([repr(sys.argv), repr(dict(os.environ)), settings]))
if mode == "bad archive" and any("SharedArchiveFile" in argument for argument in sys.argv):
    os.kill(os.getpid(), signal.SIGSEGV)
out = sys.stdout
out.write("OpenJDK warning: something\\n")
out.write("\\x01sqe gateway 12345\\n")
out.flush()
if mode == "silent":
    time.sleep(60)
if mode == "fails":
    out.write("\\x01sqe failed java.lang.IllegalStateException: no luck\\n")
    out.flush()
    sys.exit(1)
if mode == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
out.write("\\x01sqe session\\n")
out.flush()
sys.stdin.buffer.read()
"""


class FakeJava:
    """A folder that looks like a Java, with a `bin/java` that plays the engine's part of the conversation."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._mode_file = home / "mode"
        self.seen = home / "seen"

    def write(self, *, version: str = "21.0.8", release: bool = True, code: int = 0) -> FakeJava:
        """Lay the folder; without `release` the version must be asked from the program."""
        (self.home / "bin").mkdir(parents=True, exist_ok=True)
        program = self.home / "bin" / "java"
        answer = f"    java.home = {self.home}\n    java.version = {version}\n"
        program.write_text(
            _JAVA_PROGRAM.format(
                python=sys.executable, answer=answer, code=code, mode_file=str(self._mode_file), seen=str(self.seen)
            )
        )
        program.chmod(0o755)
        if release:
            (self.home / "release").write_text(f'IMPLEMENTOR="Test"\nJAVA_VERSION="{version}"\n')
        return self

    def behave(self, mode: str) -> None:
        """Choose how the next start goes: good, fails, killed, silent, bad archive."""
        self._mode_file.write_text(mode)


@pytest.fixture
def fake_java(tmp_path: Path) -> Callable[[str], FakeJava]:
    """Make Javas by name."""
    return lambda name: FakeJava(tmp_path / "javas" / name)
