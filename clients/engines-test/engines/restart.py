"""A program of Python that asks while Countersign is stopped and started again."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable

from .countersign import Countersign
from .places import ENGINES, HERE

SECONDS = 240.0
PROGRAM = HERE / "plays" / "ask_through_restart.py"


def check(line: Callable[..., None], countersign: Countersign) -> None:
    """Restarts Countersign between the question and the decision."""
    begin = time.monotonic()
    environment = {**os.environ, "COUNTERSIGN_URL": countersign.url}
    asking = subprocess.Popen(
        [ENGINES / "python" / "bin" / "python", PROGRAM],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert asking.stdin
        assert asking.stdout
        waits = asking.stdout.readline()
        if waits != "waiting\n":
            raise RuntimeError("the program does not wait")  # noqa: TRY301
        countersign.restart()
        printed, _ = asking.communicate("decide\n", timeout=SECONDS)
        is_fine = re.fullmatch(r"approved: After the restart\.\n", printed) is not None and asking.returncode == 0
        line("ok" if is_fine else "FAIL", "python", "Countersign is restarted while a program waits", time.monotonic() - begin)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        line("FAIL", "python", f"Countersign is restarted while a program waits: {error}", time.monotonic() - begin)
    finally:
        asking.kill()
        asking.wait(10)
