"""A question in a real Airflow: scheduler, API server, DAG processor, triggerer and worker processes.

It takes some minutes, and runs with AIRFLOW_SERVICES=1 in the environment.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import HOME, connection
from tests.fake import Fake, serving

pytestmark = pytest.mark.skipif(not os.environ.get("AIRFLOW_SERVICES"), reason="set AIRFLOW_SERVICES=1")

AIRFLOW = Path(sys.executable).with_name("airflow")
DAG = """
from datetime import datetime, timedelta, timezone
from airflow.sdk import DAG, task
from countersign_airflow.operators import CountersignApprovalOperator

with DAG("release", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=timezone.utc), is_paused_upon_creation=False):
    question = CountersignApprovalOperator(
        task_id="ask", title="Release?", approver="grace@example.com", retries=2, retry_delay=timedelta(seconds=1)
    )

    @task
    def release(result):
        print(result["status"], result["comment"])

    release(question.output)
"""


def wait_for(condition: Callable[[], Any], seconds: float) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.2)
    return found


class Services:
    """The processes of Airflow, as an operator runs them."""

    def __init__(self, url: str) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        self.environment = {
            **os.environ,
            "AIRFLOW_CONN_COUNTERSIGN_DEFAULT": connection(url),
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API_AUTH__JWT_SECRET": uuid.uuid4().hex,
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": f"{HOME}/logs",
        }
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        with Path(HOME, f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen([AIRFLOW, name], env=self.environment, stdout=log, stderr=log)

    def stop(self, name: str) -> None:
        process = self.running.pop(name)
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)

    def call(self, *words: str) -> str:
        result = subprocess.run([AIRFLOW, *words], env=self.environment, capture_output=True, text=True, timeout=120)
        return result.stdout if result.returncode == 0 else ""

    def state(self, run_id: str) -> str:
        listed = self.call("dags", "list-runs", "release", "--output", "json")
        runs = json.loads(listed[listed.index("[{") :]) if "[{" in listed else []
        return next((run["state"] for run in runs if run["run_id"] == run_id), "")


@pytest.fixture
def services(airflow: str) -> Iterator[tuple[Services, Fake]]:
    with serving(Fake()) as fake:
        Path(HOME, "dags", "release.py").write_text(DAG)
        services = Services(fake.url)
        try:
            for name in ("api-server", "scheduler", "dag-processor", "triggerer"):
                services.start(name)
            yield services, fake
        finally:
            for name in list(services.running):
                services.stop(name)


def waits(fake: Fake) -> int:
    return len([seen for seen in fake.seen if "wait" in seen.query])


def test_a_restart_of_the_triggerer_and_a_cleared_task(services: tuple[Services, Fake]) -> None:
    running, fake = services
    wait_for(lambda: "release" in running.call("dags", "list", "--output", "plain"), 120)
    running.call("dags", "trigger", "release", "--run-id", "run-1")
    first = wait_for(lambda: next(iter(fake.tasks), None), 120)
    wait_for(lambda: waits(fake), 60)

    # The question is answered while no triggerer runs.
    running.stop("triggerer")
    fake.decide(first, "approved", "Go.")
    running.start("triggerer")
    wait_for(lambda: running.state("run-1") == "success", 180)
    assert list(fake.tasks) == [first]

    # A task that is cleared asks again.
    running.call("tasks", "clear", "release", "--task-regex", "ask", "--downstream", "--yes")
    second = wait_for(lambda: next((task for task in fake.tasks if task != first), None), 120)
    fake.decide(second, "rejected", "Not again.")
    wait_for(lambda: running.state("run-1") == "failed", 180)
    assert list(fake.tasks) == [first, second]
