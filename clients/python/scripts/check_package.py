"""Builds the package, checks what an index would check, installs it into an empty environment, and asks a question there.

`python scripts/check_package.py` needs `build` and `twine`. With COUNTERSIGN_URL and COUNTERSIGN_KEY it asks that server, and
withdraws the question.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent

ASK = """
import os, sys
from countersign_client import Client, ConnectionFailed, WaitTimeout, __version__
assert "site-packages" in sys.modules["countersign_client"].__file__
try:
    with Client(requester="ada@example.com", outage=0, retry_for=0) as countersign:
        countersign.ask("Is this package complete?", "grace@example.com", timeout=1, withdraw_on_timeout=True)
except WaitTimeout as timeout:
    print(f"{__version__}: asked, and withdrew task {timeout.task.id}")
except ConnectionFailed:
    if os.environ["COUNTERSIGN_URL"] != "http://127.0.0.1:9":
        raise
    print(f"{__version__}: no server to ask; set COUNTERSIGN_URL and COUNTERSIGN_KEY")
"""


def run(*command: str | Path, **variables: str) -> None:
    """Runs a command, which must succeed."""
    subprocess.run(command, check=True, env={**os.environ, **variables}, timeout=600)  # noqa: S603


def main() -> None:
    """Checks the package."""
    with tempfile.TemporaryDirectory() as folder:
        dist = Path(folder, "dist")
        run(sys.executable, "-m", "build", "--outdir", dist, PACKAGE)
        built = sorted(dist.iterdir())
        run(sys.executable, "-m", "twine", "check", "--strict", *built)
        for package in built:
            environment = Path(folder, package.suffix)
            venv.create(environment, with_pip=True)
            python = environment / "bin" / "python"
            run(python, "-m", "pip", "install", "--quiet", package)
            run(python, "-I", "-c", ASK, COUNTERSIGN_URL=os.environ.get("COUNTERSIGN_URL", "http://127.0.0.1:9"))


if __name__ == "__main__":
    main()
