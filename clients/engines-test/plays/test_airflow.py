"""The DAG of the snippet, and what can happen to its question, with a real Countersign. Airflow runs it with its trigger."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from people import URL, People
from programs import SNIPPETS

# Airflow reads them when it is imported.
HOME = Path(tempfile.mkdtemp(prefix="airflow-"))
os.environ.update(
    AIRFLOW_HOME=str(HOME),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__DAGS_FOLDER=str(HOME / "dags"),
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{HOME}/airflow.db",
)
SNIPPET = (SNIPPETS / "airflow_order.py").read_text()
SECONDS = 120


@pytest.fixture(scope="session", autouse=True)
def database() -> Iterator[None]:
    (HOME / "dags").mkdir()
    command = [Path(sys.executable).with_name("airflow"), "db", "migrate"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
    yield
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture
def play(people: People, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Callable[..., dict[str, Any]]:
    """Runs the DAG while something happens to its question, and returns the states and results of its tasks."""
    connection = {"conn_type": "countersign", "host": URL, "password": people.key}
    monkeypatch.setenv("AIRFLOW_CONN_COUNTERSIGN_DEFAULT", json.dumps(connection))

    def run(act: Callable[[str], Any], options: str = "") -> dict[str, Any]:
        name = request.node.name
        source = SNIPPET.replace('DAG("order"', f'DAG("{name}"').replace("notify=True,", f"notify=True, {options}")
        path = HOME / "dags" / f"{name}.py"
        path.write_text(f"from datetime import datetime, timedelta\n{source}")
        errors: list[BaseException] = []

        def happen() -> None:
            try:
                act(people.only_task(SECONDS))
            except BaseException as error:
                errors.append(error)
                raise

        thread = threading.Thread(target=happen)
        thread.start()
        ended = runpy.run_path(str(path))["dag"].test()
        thread.join(SECONDS)
        assert not errors
        assert people.client.count() == 1
        instances = {instance.task_id: instance for instance in ended.get_task_instances()}
        result = instances["ship"].xcom_pull(task_ids="ship")
        return {**{name: str(instance.state) for name, instance in instances.items()}, "result": result}

    return run


def failed(result: str | None = None) -> dict[str, Any]:
    return {"ask": "failed", "ship": "upstream_failed", "result": result}


def test_approved(people: People, play: Any) -> None:
    ended = play(lambda task: people.client.approve(task, comment="Go."))
    assert ended == {"ask": "success", "ship": "success", "result": f"approved by {people.email}"}


def test_rejected(people: People, play: Any) -> None:
    assert play(lambda task: people.client.reject(task, comment="Out of stock.")) == failed()


def test_cancelled(people: People, play: Any) -> None:
    assert play(lambda task: people.client.cancel(task, reason="Shipped already.")) == failed()


def test_due(people: People, play: Any) -> None:
    options = "response_timeout=timedelta(seconds=2), withdraw_on_timeout=True"
    asked: list[str] = []
    assert play(asked.append, options) == failed()
    assert people.client.get(asked[0]).status == "cancelled"


def test_revoked(people: People, play: Any) -> None:
    # The task fails although there is no decision yet, and the question stays open.
    asked: list[str] = []
    assert play(lambda task: (asked.append(task), people.revoke())) == failed()
    assert people.client.get(asked[0]).is_pending
