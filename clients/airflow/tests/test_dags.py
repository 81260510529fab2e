"""Questions in DAGs that Airflow runs, with the trigger."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import HOME, connection
from countersign_client import Client
from tests.fake import KEY, Fake, problem
from tests.real import ALL, Account

pytestmark = pytest.mark.usefixtures("airflow")


SOURCE = """
from datetime import datetime, timedelta, timezone
from airflow.sdk import DAG, task
from countersign_airflow.operators import CountersignApprovalOperator

with DAG("{name}", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=timezone.utc)) as dag:
    question = CountersignApprovalOperator(
        task_id="ask",
        title="Ship order {{{{ params.order }}}}?",
        approver="grace@example.com",
        params={{"order": 4711}},
        retry_delay=timedelta(0),
        **{options},
    )

    @task
    def ship(result):
        return f"{{result['status']}} by {{result['decided_by']}}: {{result['comment']}}"

    ship(question.output)
"""


def run_dag(name: str, **options: str | bool | int) -> Any:
    """Runs a DAG with one question and one task after it."""
    return run_source(name, SOURCE.format(name=name, options="dict(" + ", ".join(f"{k}={v}" for k, v in options.items()) + ")"))


def run_source(name: str, source: str) -> Any:
    """Runs the DAG of a file in the folder of DAGs."""
    path = Path(HOME, "dags", f"{name}.py")
    path.write_text(source)
    if version("apache-airflow") < "3.2":
        # Later ones do it themselves.
        command = [Path(sys.executable).with_name("airflow"), "dags", "reserialize"]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    run = runpy.run_path(str(path))["dag"].test()
    states = {instance.task_id: str(instance.state) for instance in run.get_task_instances()}
    path.unlink()
    return states, run


def when_waiting(fake: Fake, act: Callable[[str], Any]) -> threading.Thread:
    def go() -> None:
        fake.until(lambda: any("wait" in seen.query for seen in fake.seen), 120)
        act(next(iter(fake.tasks)))

    thread = threading.Thread(target=go)
    thread.start()
    return thread


def result_of(run: Any, task_id: str) -> Any:
    (instance,) = [instance for instance in run.get_task_instances() if instance.task_id == task_id]
    return instance.xcom_pull(task_ids=task_id)


@pytest.mark.parametrize("deferrable", [True, False])
def test_an_approval(fake: Fake, deferrable: bool) -> None:
    thread = when_waiting(fake, lambda id: fake.decide(id, "approved", "Go."))
    states, run = run_dag(f"approved_{deferrable}", deferrable=deferrable, metadata={"order": 1}, notify=True)
    thread.join()
    assert states == {"ask": "success", "ship": "success"}
    (task,) = fake.tasks.values()
    assert (task["title"], task["requester"], task["notify"]) == ("Ship order 4711?", "flows@example.com", True)
    assert task["metadata"]["order"] == 1
    assert task["metadata"]["dag_id"] == f"approved_{deferrable}"
    assert result_of(run, "ship") == "approved by grace@example.com: Go."


@pytest.mark.parametrize(
    ("on_rejected", "expected"),
    [
        ("fail", {"ask": "failed", "ship": "upstream_failed"}),
        ("skip", {"ask": "skipped", "ship": "skipped"}),
        ("return", {"ask": "success", "ship": "success"}),
    ],
)
def test_a_rejection(fake: Fake, on_rejected: Any, expected: dict[str, str]) -> None:
    thread = when_waiting(fake, lambda id: fake.decide(id, "rejected", "Too late."))
    states, run = run_dag(f"rejected_{on_rejected}", on_rejected=repr(on_rejected), retries=3)
    thread.join()
    assert states == expected
    assert len(fake.tasks) == 1
    if on_rejected == "return":
        assert result_of(run, "ship") == "rejected by grace@example.com: Too late."


def test_a_withdrawal(fake: Fake) -> None:
    thread = when_waiting(fake, lambda id: fake.decide(id, "cancelled", "Shipped already."))
    states, _ = run_dag("withdrawn")
    thread.join()
    assert states == {"ask": "failed", "ship": "upstream_failed"}


@pytest.mark.parametrize("withdraw", [True, False])
def test_no_decision_in_time(fake: Fake, withdraw: bool) -> None:
    states, _ = run_dag(f"timeout_{withdraw}", response_timeout="timedelta(seconds=2)", withdraw_on_timeout=withdraw)
    assert states["ask"] == "failed"
    (task,) = fake.tasks.values()
    assert task["status"] == ("cancelled" if withdraw else "pending")


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_decision_before_the_late_withdrawal_counts(fake: Fake, deferrable: bool) -> None:
    original = fake.handle

    def handle(seen: Any) -> Any:
        if seen.path.endswith("/cancel"):
            fake.decide(next(iter(fake.tasks)), "approved", "Just in time.")
        return original(seen)

    fake.handle = handle  # type: ignore[method-assign]
    options: dict[str, Any] = {"response_timeout": "timedelta(0)", "withdraw_on_timeout": True, "deferrable": deferrable}
    states, run = run_dag(f"late_{deferrable}", **options)
    assert states == {"ask": "success", "ship": "success"}
    assert result_of(run, "ship") == "approved by grace@example.com: Just in time."


def test_cut_connections_and_lost_answers(fake: Fake) -> None:
    fake.fail("lose", where=lambda seen: seen.method == "POST")
    fake.fail("cut", times=2, where=lambda seen: "wait" in seen.query)

    def decide() -> None:
        fake.until(lambda: len([seen for seen in fake.seen if "wait" in seen.query]) >= 3, 120)
        fake.decide(next(iter(fake.tasks)), "approved")

    thread = threading.Thread(target=decide)
    thread.start()
    states, _ = run_dag("cut")
    thread.join()
    assert states == {"ask": "success", "ship": "success"}
    assert len(fake.tasks) == 1


def test_a_revoked_key_fails_the_task(fake: Fake) -> None:
    fake.fail("answer", where=lambda seen: "wait" in seen.query, answer=problem(401, "invalid-key"))
    states, _ = run_dag("revoked")
    assert states["ask"] == "failed"


def test_retries_keep_the_question_and_clearing_asks_again() -> None:
    from types import SimpleNamespace

    from countersign_airflow.operators import key_of

    instance = {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": -1, "max_tries": 2, "try_number": 1}
    key = key_of(SimpleNamespace(**instance))
    assert key_of(SimpleNamespace(**{**instance, "try_number": 2})) == key
    for name, value in [("max_tries", 5), ("map_index", 0), ("run_id", "s"), ("dag_id", "e"), ("task_id", "u")]:
        assert key_of(SimpleNamespace(**{**instance, name: value})) != key


def test_a_retry_after_a_day_finds_the_question(fake: Fake) -> None:
    from types import SimpleNamespace

    from countersign_airflow.operators import AirflowFailException, CountersignApprovalOperator

    def run(**differences: int) -> None:
        instance = {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": -1, "max_tries": 2, "try_number": 1}
        ti = SimpleNamespace(**{**instance, **differences}, xcom_push=lambda **_: None)
        # Countersign forgets keys after a day.
        fake.keys.clear()
        with pytest.raises(AirflowFailException, match="in time"):
            question.execute({"ti": ti, "dag_run": SimpleNamespace(start_date=None)})

    question = CountersignApprovalOperator(
        task_id="t",
        title=" Ship 1, 2? ",
        approver="grace@example.com",
        metadata={"order": 1},
        deferrable=False,
        response_timeout=timedelta(0),
    )
    run()
    run(try_number=2)
    assert len(fake.tasks) == 1
    (listed,) = [seen for seen in fake.seen if seen.method == "GET" and seen.path == "/people-task/tasks"]
    assert (listed.query["filter"], listed.query["role"]) == ([r"title:Ship 1\, 2?"], ["creator"])
    # Another one of a mapped task, and one that was cleared, ask for themselves.
    run(try_number=2, map_index=0)
    run(try_number=3, max_tries=5)
    assert len(fake.tasks) == 3


def test_a_worker_waits_through_an_outage_of_hours(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from countersign_airflow.operators import CountersignApprovalOperator

    def quick(**arguments: Any) -> Client:
        client = Client(**arguments)
        # A second is an hour.
        client._settings.clock = lambda: time.monotonic() * 3600
        return client

    monkeypatch.setattr("countersign_airflow.hooks.Client", quick)
    fake.fail("cut", times=4, where=lambda seen: "wait" in seen.query)

    def decide() -> None:
        fake.until(lambda: len([seen for seen in fake.seen if "wait" in seen.query]) >= 5, 60)
        fake.decide(next(iter(fake.tasks)), "approved")

    thread = threading.Thread(target=decide)
    thread.start()
    question = CountersignApprovalOperator(task_id="t", title="Ship?", approver="grace@example.com", deferrable=False)
    names = {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": -1, "max_tries": 2, "try_number": 1}
    ti = SimpleNamespace(**names, xcom_push=lambda **_: None)
    event = question.execute({"ti": ti, "dag_run": SimpleNamespace(start_date=None)})
    thread.join()
    assert event["status"] == "approved"


def test_the_trigger_has_no_secrets(fake: Fake) -> None:
    from countersign_airflow.triggers import CountersignTrigger

    path, arguments = CountersignTrigger("1", end=5.0, withdraw_on_timeout=True).serialize()
    module, _, name = path.rpartition(".")
    again = getattr(import_module(module), name)(**arguments)
    assert again.serialize() == (path, arguments)
    assert KEY not in repr(arguments)


def test_the_connection_is_found_and_tested(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.providers_manager import ProvidersManager

    from countersign_airflow.hooks import CountersignHook, address_of

    manager = ProvidersManager()
    assert manager.hooks["countersign"].hook_name == "Countersign"
    assert "airflow-provider-countersign" in manager.providers
    assert CountersignHook().test_connection() == (True, "The key sees 0 tasks.")
    monkeypatch.setenv("AIRFLOW_CONN_COUNTERSIGN_DEFAULT", connection(fake.url, "csk_other"))
    worked, message = CountersignHook(retry_for=0).test_connection()
    assert not worked
    assert "invalid-key" in message
    assert "csk_other" not in message
    parts = CountersignHook.get_connection("countersign_default")
    assert address_of(parts) == fake.url


MAPPED = """
from datetime import datetime, timezone
from airflow.sdk import DAG
from countersign_airflow.operators import CountersignApprovalOperator

with DAG("mapped", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=timezone.utc)) as dag:
    partial = CountersignApprovalOperator.partial(task_id="ask", approver="grace@example.com")
    partial.expand(title=["Same?", "Same?"])
"""


def test_a_mapped_task_asks_each(fake: Fake) -> None:
    def decide() -> None:
        for number in (1, 2):
            fake.until(lambda number=number: len(fake.tasks) >= number, 120)
            fake.decide(list(fake.tasks)[number - 1], "approved")

    thread = threading.Thread(target=decide)
    thread.start()
    _, run = run_source("mapped", MAPPED)
    thread.join()
    assert str(run.state) == "success"
    assert len(fake.tasks) == 2


@pytest.mark.skipif(not os.environ.get("COUNTERSIGN_URL"), reason="no server: COUNTERSIGN_URL is not set")
@pytest.mark.parametrize("status", ["approved", "rejected"])
def test_with_a_real_server(monkeypatch: pytest.MonkeyPatch, status: Any) -> None:
    url = os.environ["COUNTERSIGN_URL"]
    with httpx.Client(base_url=url, timeout=20) as http:
        account = Account(http)
        key = account.key(*ALL)["key"]
    monkeypatch.setenv("AIRFLOW_CONN_COUNTERSIGN_DEFAULT", connection(url, key, account.email))

    def decide() -> None:
        end = time.monotonic() + 120
        with Client(url, key) as client:
            while not (found := list(client.tasks(status="pending"))) and time.monotonic() < end:
                time.sleep(0.2)
            client.decide(found[0].id, status, comment="Said so.")

    thread = threading.Thread(target=decide)
    thread.start()
    states, run = run_dag(f"real_{status}", on_rejected="'return'")
    thread.join()
    assert states == {"ask": "success", "ship": "success"}
    assert result_of(run, "ship") == f"{status} by {account.email}: Said so."
    with Client(url, key) as client:
        assert client.count() == 1
