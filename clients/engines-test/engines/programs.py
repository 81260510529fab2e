"""Runs programs with a time-out, and keeps what they print in a file."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# What tests and installers print if a registry cannot be reached.
_OFFLINE = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT|ENOTCACHED|Temporary failure in name resolution|"
    r"Failed to establish a new connection|NewConnectionError|ConnectTimeoutError|No matching distribution found|"
    r"Network is unreachable|Name or service not known"
)
_GRACE = 10.0
_running: set[subprocess.Popen[bytes]] = set()
_lock = threading.Lock()


@dataclass(frozen=True)
class Ended:
    """How a program ended. ``code`` is None if it ran for longer than it may."""

    code: int | None
    log: Path

    @property
    def succeeded(self) -> bool:
        return self.code == 0

    @property
    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def lacks_network(self) -> bool:
        """Whether it failed because it could not reach another computer, as far as its log says."""
        return not self.succeeded and bool(_OFFLINE.search(self.text))


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a program that leads a process group, and all that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            continue
    process.wait(_GRACE)


def stop_all() -> None:
    """Ends all programs that run, so that the threads that wait for them go on."""
    with _lock:
        running = list(_running)
    for process in running:
        stop(process)


def run(
    command: Sequence[str | Path], *, log: Path, seconds: float, folder: Path, variables: Mapping[str, str] | None = None
) -> Ended:
    """Runs a program in a process group of its own, which ends with it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **(variables or {})}
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                [str(word) for word in command],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            output.write(f"{error}\n".encode())
            return Ended(127, log)
        with _lock:
            _running.add(process)
        code: int | None = None
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            output.write(f"\nended after {seconds:.0f} s\n".encode())
        finally:
            stop(process)
            with _lock:
                _running.remove(process)
    return Ended(code, log)
