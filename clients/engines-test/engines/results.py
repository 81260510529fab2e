"""Reads which tests passed from the output of pytest and of Node's test runner."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

# A test in TAP, `ok 1 - name # SKIP`, or in the format spec, `✔ name (1.2ms)`.
_TAP = re.compile(r"^\s*(?P<failed>not )?ok \d+ - (?P<name>.*?)(?P<skipped> # SKIP.*| # TODO.*)?$")
_SPEC = re.compile(r"^\s*(?P<mark>[✔✖﹣]) (?P<name>.*?) \([\d.]+ms\)(?P<skipped> # .*)?$")


@dataclass
class Results:
    """The names of tests, as often as they ran."""

    passed: Counter[str] = field(default_factory=Counter[str])
    skipped: Counter[str] = field(default_factory=Counter[str])
    failed: Counter[str] = field(default_factory=Counter[str])

    def add(self, name: str, failed: bool, skipped: bool) -> None:
        (self.failed if failed else self.skipped if skipped else self.passed)[name] += 1

    def count(self) -> str:
        """How many there are, and the names of those that failed, for people."""
        counted = {"passed": self.passed, "skipped": self.skipped, "failed": self.failed}
        numbers = ", ".join(f"{sum(tests.values())} {name}" for name, tests in counted.items() if tests or name == "passed")
        return numbers + (f": {'; '.join(self.failed)}" if self.failed else "")

    def missing(self, tests: tuple[str, ...]) -> list[str]:
        """Those of the tests that did not pass. `test_x` also names `test_x[parameters]`."""
        return [name for name in tests if not _is_in(self.passed, name) or _is_in(self.failed, name)]

    def was_skipped(self, name: str) -> bool:
        """Whether a test said why it cannot run, as where the server takes no more attempts with refused keys."""
        return _is_in(self.skipped, name) and not _is_in(self.failed, name)


def _is_in(tests: Counter[str], name: str) -> bool:
    return any(test == name or test.startswith(f"{name}[") for test in tests)


def of_pytest(report: Path) -> Results:
    """Reads a JUnit file that pytest wrote."""
    results = Results()
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - it is ours
            failed = case.find("failure") is not None or case.find("error") is not None
            results.add(case.get("name", ""), failed, case.find("skipped") is not None)
    return results


def of_node(text: str) -> Results:
    """Reads what Node's test runner printed. Suites count as tests, too."""
    results = Results()
    for line in text.splitlines():
        if tap := _TAP.match(line):
            results.add(tap["name"].replace("\\#", "#"), bool(tap["failed"]), bool(tap["skipped"]))
        elif spec := _SPEC.match(line):
            results.add(spec["name"], spec["mark"] == "✖", spec["mark"] == "﹣" or "SKIP" in (spec["skipped"] or ""))
    return results
