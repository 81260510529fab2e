"""A Prefect server of the tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx


@contextmanager
def prefect_server(home: Path) -> Iterator[str]:
    """Runs a server, and lets Prefect of this process use it if that is not imported yet."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}/api"
    environment = {
        "PREFECT_HOME": str(home),
        "PREFECT_API_URL": url,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "WARNING",
        "DO_NOT_TRACK": "1",
    }
    os.environ.update(environment)
    command = [
        Path(sys.executable).with_name("prefect"),
        "server",
        "start",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--no-ui",
    ]
    log = (home / "server.log").open("w")
    process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=log, stderr=log)
    try:
        wait_for(lambda: is_up(url), 240)
        yield url
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def is_up(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=2, verify=False).status_code == 200
    except httpx.RequestError:
        return False


def wait_for(condition: Any, seconds: float) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
    return found
