"""Installs the engines, in the versions that are named here and in the folder requirements. What is there is used again.

Python's engines are in `.local/engines/NAME`, n8n in `.local/engines/n8n`. The packages for Node.js have their tools, among them
Node-RED and the MCP inspector, in `clients/NAME/node_modules`, in the versions of their `package-lock.json`.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from .places import CLIENTS, ENGINES, HERE, LOGS
from .programs import Ended, run

INSTALL_SECONDS = 1200.0
BUILD_SECONDS = 300.0
# What the tests need at least, and what is installed where it is missing.
NODE, NODE_VERSION = 20, "20.20.2"
_done: set[tuple[Path, tuple[str, ...]]] = set()

# The versions that the pages name. Those of Python's engines must be in their requirements, Node-RED's in its package.json.
VERSIONS = {"langgraph": "1.2.24", "prefect": "3.9.1", "airflow": "3.3.2", "node-red": "4.1.15", "n8n": "2.41.1"}


class NotInstalled(Exception):
    """An engine could not be installed."""

    def __init__(self, what: str, ended: Ended) -> None:
        lines = ended.text.strip().splitlines()[-8:]
        super().__init__(f"{what} could not be installed:\n  " + "\n  ".join(lines))
        self.lacks_network = ended.lacks_network


def _caches() -> dict[str, str]:
    return {
        "PIP_CACHE_DIR": str(ENGINES / "caches" / "pip"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        # Without a network, it soon says so.
        "PIP_RETRIES": "1",
        "npm_config_fetch_retries": "1",
        "npm_config_fetch_retry_mintimeout": "2000",
        "npm_config_cache": str(ENGINES / "caches" / "npm"),
        "npm_config_update_notifier": "false",
        "npm_config_fund": "false",
        "npm_config_audit": "false",
    }


def _must(what: str, log: str, *command: str | Path, folder: Path = HERE, seconds: float = INSTALL_SECONDS) -> None:
    ended = run(command, log=LOGS / f"{log}.log", seconds=seconds, folder=folder, variables=_caches())
    if not ended.succeeded:
        raise NotInstalled(what, ended)


def _digest(*files: Path) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _is_current(stamp: Path, digest: str) -> bool:
    return stamp.exists() and stamp.read_text() == digest


def python(name: str) -> Path:
    """An environment with an engine; returns its interpreter."""
    requirements = HERE / "requirements" / f"{name}.txt"
    folder, digest = ENGINES / name, _digest(requirements)
    interpreter = folder / "bin" / "python"
    if not (_is_current(folder / "installed", digest) and interpreter.exists()):
        _must(name, f"{name}-environment", sys.executable, "-m", "venv", "--clear", folder)
        _must(name, f"{name}-install", interpreter, "-m", "pip", "install", "--no-deps", "--requirement", requirements)
        (folder / "installed").write_text(digest)
    return interpreter


def python_packages(interpreter: Path, name: str, *packages: str) -> None:
    """Builds packages of this repository, and installs them into the environment of an engine, once."""
    if (interpreter, packages) in _done:
        return
    _done.add((interpreter, packages))
    pip = (interpreter, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--force-reinstall")
    sources = [CLIENTS / package for package in packages]
    _must(" and ".join(packages), f"{name}-packages", *pip, *sources, seconds=BUILD_SECONDS)


def node(name: str) -> Path:
    """A package for Node.js, with what its lock file names; returns its folder."""
    use_node()
    folder = CLIENTS / name
    stamp, digest = ENGINES / f"node_modules-{name}", _digest(folder / "package-lock.json")
    if not (_is_current(stamp, digest) and (folder / "node_modules").is_dir()):
        _must(name, f"{name}-install", "npm", "ci", "--prefer-offline", folder=folder)
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(digest)
    return folder


def built_node(name: str) -> Path:
    """A package for Node.js that is built, so that programs can import it from its folder; returns that."""
    folder = node(name)
    stamp, digest = ENGINES / f"dist-{name}", _digest(*sorted((folder / "src").rglob("*.ts")), folder / "package-lock.json")
    if not (_is_current(stamp, digest) and (folder / "dist").is_dir()):
        _must(name, f"{name}-build", "npm", "run", "build", folder=folder, seconds=BUILD_SECONDS)
        stamp.write_text(digest)
    return folder


def runtime(name: str, package: str) -> Path:
    """A program that is in a package of npm, such as another Node.js; returns it."""
    folder = ENGINES / f"runtime-{package}"
    program = folder / "node_modules" / ".bin" / name
    stamp = folder / "installed"
    if not (_is_current(stamp, package) and program.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        _must(package, f"runtime-{name}-install", "npm", "install", package, folder=folder)
        stamp.write_text(package)
    return program


def node_package(version: str) -> str:
    """The package of npm that has the program of a version of Node.js for this machine."""
    machine = "arm64" if platform.machine() == "aarch64" else "x64"
    return f"node-linux-{machine}@{version}"


@cache
def use_node() -> None:
    """Lets all programs find a Node.js in which the tests run: Debian 12 has an older one."""
    found = shutil.which("node")
    if found and int(subprocess.check_output([found, "--version"], text=True, timeout=30)[1:].split(".")[0]) >= NODE:
        return
    program = runtime("node", node_package(NODE_VERSION))
    os.environ["PATH"] = f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def n8n() -> Path:
    """The real n8n, with a Node.js of its own."""
    folder = ENGINES / "n8n"
    _must("n8n", "n8n-engine-install", CLIENTS / "n8n" / "test" / "install-n8n", folder)
    return folder
