"""The settings of the pages start the agents' server, and an agent asks with it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from people import URL, People
from programs import CLIENTS, SNIPPETS


def test_approved(people: People) -> None:
    server = json.loads((SNIPPETS / "mcp.json").read_text())["mcpServers"]["countersign"]
    assert [server["command"], *server["args"]] == ["npx", "-y", "@countersign/mcp"]
    environment = {**people.environment(), **server["env"], "COUNTERSIGN_URL": URL, "COUNTERSIGN_KEY": people.key}
    command = ["node", CLIENTS / "mcp" / "dist" / "main.js"]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as agent:
        assert agent.stdin
        assert agent.stdout

        def call(number: int, method: str, **params: Any) -> Any:
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            print(json.dumps(message), file=agent.stdin, flush=True)
            for line in agent.stdout or ():
                answer = json.loads(line)
                if answer.get("id") == number:
                    return answer["result"]
            raise AssertionError("the server ended")

        try:
            info = {"name": "engines-test", "version": "1"}
            call(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), file=agent.stdin, flush=True)
            asked = call(2, "tools/call", name="request_approval", arguments={"title": "Ship order 4711?"})
            id = asked["structuredContent"]["id"]
            assert id == people.only_task()
            people.client.approve(id, comment="Go.")
            told = call(3, "tools/call", name="wait_for_approval", arguments={"id": id})["structuredContent"]
            assert (told["approved"], told["comment"]) == (True, "Go.")
        finally:
            agent.kill()
