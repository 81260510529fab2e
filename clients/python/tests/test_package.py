"""What holds for the package as a whole."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from countersign_client import __version__

PACKAGE = Path(__file__).resolve().parent.parent
PRODUCT = PACKAGE.parent.parent / "Cargo.toml"


@pytest.mark.skipif(not PRODUCT.exists(), reason="only in the repository of Countersign")
def test_the_versions_are_those_of_the_product() -> None:
    version = re.search(r'^version = "(.+)"$', PRODUCT.read_text(), re.MULTILINE)
    assert version
    assert version[1] == __version__
    provider = PACKAGE.parent / "airflow" / "src" / "countersign_airflow" / "__init__.py"
    assert f'__version__ = "{__version__}"' in provider.read_text()
    assert f"countersign-client>={__version__}" in (PACKAGE.parent / "airflow" / "pyproject.toml").read_text()
    for name in ("python", "airflow"):
        assert f"\n## {__version__}\n" in (PACKAGE.parent / name / "CHANGELOG.md").read_text()


def test_the_blocking_client_is_made_from_the_asynchronous_one() -> None:
    subprocess.run([sys.executable, PACKAGE / "scripts" / "make_sync.py", "--check"], check=True, timeout=60)


def test_nothing_of_an_engine_is_needed_to_import_the_client() -> None:
    code = "import sys, countersign_client; print([name for name in ('langgraph', 'prefect', 'airflow') if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert result.stdout.strip() == "[]"
