"""An Airflow of its own for the tests, and a small Countersign on a real socket."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from tests.fake import KEY, Fake, serving

# Airflow reads them when it is imported.
HOME = tempfile.mkdtemp(prefix="airflow-")
os.environ.update(
    AIRFLOW_HOME=HOME,
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__DAGS_FOLDER=f"{HOME}/dags",
    AIRFLOW__CORE__UNIT_TEST_MODE="False",
    AIRFLOW__LOGGING__LOGGING_LEVEL="INFO",
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{HOME}/airflow.db",
)


def pytest_unconfigure() -> None:
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def airflow() -> str:
    """The folder of an Airflow with a database."""
    Path(HOME, "dags").mkdir(exist_ok=True)
    command = [Path(sys.executable).with_name("airflow"), "db", "migrate"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
    return HOME


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    with serving(Fake()) as fake:
        monkeypatch.setenv("AIRFLOW_CONN_COUNTERSIGN_DEFAULT", connection(fake.url))
        yield fake


def connection(url: str, key: str = KEY, login: str = "flows@example.com") -> str:
    return json.dumps({"conn_type": "countersign", "host": url, "password": key, "login": login})
