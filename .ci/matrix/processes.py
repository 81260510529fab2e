"""Processes that end with this program, and what they need: ports, passwords, waiting."""

from __future__ import annotations

import os
import pwd
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

RUNNING: list[Process] = []


class Failed(Exception):
    """A check failed; the text says why."""


class Process:
    """A process in a session of its own, so that Ctrl-C reaches this program alone, which ends it by a signal."""

    def __init__(
        self,
        command: list[object],
        log: Path,
        variables: dict[str, str],
        end: signal.Signals = signal.SIGTERM,
        **options: object,
    ) -> None:
        self.log, self.name, self.end = log, log.stem, end
        with log.open("ab") as output:
            self.child = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=variables,
                start_new_session=True,
                **options,
            )
        RUNNING.append(self)

    def wait_until(self, is_ready: Callable[[], bool], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not is_ready():
            if self.child.poll() is not None:
                raise Failed(f"{self.name} ended with {self.child.returncode}: {tail(self.log)}")
            if time.monotonic() > end:
                raise Failed(f"{self.name} was not ready within {seconds:.0f} s: {tail(self.log)}")
            time.sleep(0.1)

    def wait(self, seconds: float) -> int:
        """Returns the exit code of a process that ends by itself."""
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} still runs after {seconds:.0f} s: {tail(self.log)}") from None
        finally:
            self.stop()

    def stop(self) -> None:
        if self not in RUNNING:
            return
        if self.child.poll() is None:
            self.child.send_signal(self.end)
            try:
                self.child.wait(20)
            except subprocess.TimeoutExpired:
                pass
        # Until the child is waited for, no other process can have its number.
        if self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()
        RUNNING.remove(self)


def stop_all() -> None:
    for process in reversed(RUNNING[:]):
        process.stop()


def run(command: list[object], seconds: float = 120, **options: object) -> str:
    """Returns what a program prints."""
    command = [str(part) for part in command]
    options |= {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": seconds}
    done = subprocess.run(command, check=False, **options)
    if done.returncode != 0:
        raise Failed(f"{Path(command[0]).name} failed with {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout.strip()


def tail(log: Path, size: int = 600) -> str:
    return log.read_text(errors="replace")[-size:].strip() if log.exists() else ""


def free_ports(count: int) -> list[int]:
    """They differ, because all are open at the same time."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def password() -> str:
    return secrets.token_hex(16)


def write_private(file: Path, text: str, owner: dict[str, object] | None = None) -> Path:
    """Writes a file that only its owner can read."""
    file.touch(0o600)
    file.write_text(text)
    if owner:
        os.chown(file, owner["user"], owner["group"])
    return file


def clean_environment(**more: str) -> dict[str, str]:
    """This program's environment without the settings of another database."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG", "BACKUP_"))}
    return kept | {"LC_ALL": "C.UTF-8"} | more


def unprivileged() -> dict[str, object]:
    """Options that start a server as the user postgres: it refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
