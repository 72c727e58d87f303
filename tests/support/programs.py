"""The small C programs of a suite: built when first asked for, or found already built.

    python3 tests/support/programs.py FROM INTO    builds them all, for a machine without a compiler
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

# Static: they run where there is no library, such as a bare virtual machine.
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Wno-unused-result", "-static", "-pthread")


class Programs:
    def __init__(self, sources: pathlib.Path, folder: pathlib.Path, built: bool = False):
        self.sources = sources
        self.folder = folder
        self.built = built

    def path(self, name: str) -> pathlib.Path:
        program = self.folder / name
        if not program.exists():
            if self.built:
                raise FileNotFoundError(f"{program} should have been built before")
            self._build(name)
        return program

    def build_all(self) -> None:
        for source in sorted(self.sources.glob("*.c")):
            self.path(source.stem)

    def _build(self, name: str) -> None:
        subprocess.run(
            ["cc", *FLAGS, "-o", self.folder / name, self.sources / f"{name}.c"], check=True
        )


if __name__ == "__main__":
    into = pathlib.Path(sys.argv[2])
    into.mkdir(parents=True, exist_ok=True)
    Programs(pathlib.Path(sys.argv[1]), into).build_all()
