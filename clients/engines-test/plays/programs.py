"""Programs of snippets, run as a user runs them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SNIPPETS = Path(__file__).resolve().parent.parent / "snippets"
CLIENTS = SNIPPETS.parent.parent


class Program:
    """A running program. It ends with the block."""

    def __init__(self, command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> None:
        self._log = folder / "output.txt"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                list(command), cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: Any) -> None:
        self.kill()

    @property
    def text(self) -> str:
        """All that was printed, also by earlier programs in the folder."""
        return self._log.read_text(encoding="utf-8")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def end(self, seconds: float = 60) -> int:
        """Waits for its end, and returns its exit code."""
        return self._process.wait(seconds)

    def kill(self) -> None:
        """Ends it without a chance to tidy up."""
        self._process.kill()
        self._process.wait(30)
