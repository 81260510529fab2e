"""The snippets of Python, JavaScript and curl ask a real Countersign."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from people import People
from programs import CLIENTS, SNIPPETS, Program


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packed client of JavaScript."""
    folder = tmp_path_factory.mktemp("javascript")
    npm: Any = {"check": True, "capture_output": True, "timeout": 120}
    subprocess.run(["npm", "pack", "--silent", "--pack-destination", folder], cwd=CLIENTS / "js", **npm)
    (package,) = folder.glob("*.tgz")
    (folder / "package.json").write_text(json.dumps({"private": True, "type": "module"}))
    subprocess.run(["npm", "install", "--offline", "--no-audit", "--no-fund", package], cwd=folder, **npm)
    return folder


@pytest.fixture(params=["python", "javascript", "curl"])
def command(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[list[str | Path], Path]:
    if request.param == "python":
        return [sys.executable, SNIPPETS / "ask.py"], tmp_path
    if request.param == "curl":
        return ["bash", "-eu", SNIPPETS / "ask.sh"], tmp_path
    folder = request.getfixturevalue("installed")
    (folder / "output.txt").unlink(missing_ok=True)
    return ["node", shutil.copy(SNIPPETS / "ask.mjs", folder)], folder


def test_approved(people: People, command: Any) -> None:
    with Program(*command, people.environment()) as program:
        people.client.approve(people.only_task(), comment="Go.")
        assert program.end() == 0
        who = "approved" if "ask.sh" in str(command) else f"approved by {people.email}"
        assert program.text == f"{who}: Go.\n"


def test_rejected(people: People, command: Any) -> None:
    with Program(*command, people.environment()) as program:
        people.client.reject(people.only_task(), comment="Out of stock.")
        assert program.end() == ("ask.sh" in str(command))
        assert program.text == "rejected: Out of stock.\n"


def test_registrations(people: People) -> None:
    """Countersign takes what the page says for engines that are not here, and has a value for each placeholder."""
    page = (CLIENTS.parent / "docs" / "engines.md").read_text(encoding="utf-8")
    blocks = re.findall(r"<!-- not run: [^\n]+ -->\n```json\n(.*?)```", page, re.DOTALL)
    webhooks = [json.loads(block) for block in blocks]
    assert len(webhooks) >= 6
    created = people.client.create("Ship order 4711?", "grace@example.com", requester=people.email, webhooks=webhooks[:5])
    for webhook in webhooks[5:]:
        people.client.webhooks.register(created.id, **webhook)
    assert len(list(people.client.webhooks.list(created.id))) == len(webhooks)
    people.client.cancel(created.id)
