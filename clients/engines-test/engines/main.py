"""The command: installs, starts, tests, and says what happened."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from . import restart, results, suites
from .countersign import Countersign, NotStarted, use
from .install import NotInstalled
from .places import LOGS, ROOT
from .programs import run as run_program
from .programs import stop_all

TAIL = 25


class Report:
    """Prints one line for each check, and counts them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.begin = time.monotonic()
        self.counts = {"ok": 0, "FAIL": 0, "skip": 0}

    def line(self, kind: str, name: str, what: str, seconds: float | None = None) -> None:
        took = "" if seconds is None else f" ({seconds:.1f} s)"
        with self.lock:
            self.counts[kind] += 1
            print(f"{kind:5}{name:17}{what}{took}", flush=True)

    def end(self) -> int:
        counted = ", ".join(f"{count} {kind}" for kind, count in self.counts.items())
        print(f"{counted} in {time.monotonic() - self.begin:.0f} s; the logs are in {LOGS.relative_to(ROOT)}")
        return 1 if self.counts["FAIL"] or not self.counts["ok"] + self.counts["skip"] else 0


def prepare(report: Report, names: list[str], skip_offline: bool) -> list[suites.Suite]:
    """Installs what the engines need, one after the other."""
    found: list[suites.Suite] = []
    for name in names:
        begin = time.monotonic()
        try:
            found += suites.ALL[name]()
        except NotInstalled as error:
            if skip_offline and error.lacks_network:
                report.line("skip", name, "it is not installed, and there is no network to install it from")
            else:
                report.line("FAIL", name, str(error))
            continue
        report.line("ok", name, "installed", time.monotonic() - begin)
    return found


def test(report: Report, suite: suites.Suite, variables: dict[str, str]) -> None:
    """Runs the tests of a suite."""
    begin = time.monotonic()
    log = LOGS / f"{suite.name.replace(' ', '-')}.log"
    if suite.report:
        suite.report.unlink(missing_ok=True)
    ended = run_program(
        suite.command, log=log, seconds=suite.seconds, folder=suite.folder, variables={**variables, **suite.variables}
    )
    took = time.monotonic() - begin
    found = results.of_pytest(suite.report) if suite.report else results.of_node(ended.text)
    is_fine = ended.succeeded and bool(found.passed)
    report.line("ok" if is_fine else "FAIL", suite.name, f"tests: {found.count()}", took)
    for case, tests in suite.cases.items():
        missing = found.missing(tests)
        kind = "ok" if not missing else "skip" if all(found.was_skipped(name) for name in missing) else "FAIL"
        report.line(kind, suite.name, case + "".join(f"; not passed: {name}" for name in missing))
    if not is_fine:
        with report.lock:
            print("".join(f"  | {line}\n" for line in ended.text.splitlines()[-TAIL:]), end="", flush=True)


def grouped(found: list[suites.Suite]) -> list[list[suites.Suite]]:
    """Those that build the same package run one after the other: a build removes what the other packs. The longest begin."""
    groups: dict[str, list[suites.Suite]] = {}
    for suite in found:
        groups.setdefault(suite.name.split()[0].removesuffix("-runtimes"), []).append(suite)
    return sorted(groups.values(), key=lambda group: -sum(suite.seconds for suite in group))


def test_all(report: Report, groups: list[list[suites.Suite]], variables: dict[str, str], jobs: int) -> None:
    """Tests some groups at a time. An interruption ends what runs, and begins nothing else."""
    interrupted = threading.Event()

    def test_group(group: list[suites.Suite]) -> None:
        for suite in group:
            if not interrupted.is_set():
                test(report, suite, variables)

    with ThreadPoolExecutor(jobs) as pool:
        try:
            for done in [pool.submit(test_group, group) for group in groups]:
                done.result()
        except KeyboardInterrupt:
            interrupted.set()
            stop_all()
            raise


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="clients/engines-test/run",
        description="Tests the clients with the engines that people use.",
        epilog="With COUNTERSIGN_URL, ADMIN_USER and ADMIN_PASSWORD it asks that Countersign; otherwise it starts one.",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"one of {', '.join(suites.ALL)}; all by default")
    parser.add_argument("--light", action="store_true", help=f"only {', '.join(suites.LIGHT)}")
    parser.add_argument("--skip-offline", action="store_true", help="skip what is not installed if there is no network")
    parser.add_argument("--install-only", action="store_true", help="install the engines, and run nothing")
    parser.add_argument("--jobs", metavar="N", type=int, default=4, help="how many run at the same time (default: 4)")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in suites.ALL]
    if unknown:
        parser.error(f"{unknown[0]} is none of {', '.join(suites.ALL)}")
    if given.jobs < 1:
        parser.error("--jobs must be at least 1")
    return given


def variables_of(countersign: Countersign, names: list[str]) -> dict[str, str]:
    """The environment of the tests. The variables of the tests' user must not change them."""
    if countersign.admin is None and {"mcp", "n8n"} & set(names):
        raise NotStarted("mcp and n8n need ADMIN_USER and ADMIN_PASSWORD beside COUNTERSIGN_URL")
    os.environ.pop("COUNTERSIGN_KEY", None)
    return countersign.variables()


def play(report: Report, given: argparse.Namespace, names: list[str]) -> int:
    """Installs and tests; returns the exit code."""
    prepared = prepare(report, names, given.skip_offline)
    if given.install_only or not prepared:
        return report.end()
    countersign = None
    try:
        countersign = use()
        variables = variables_of(countersign, names)
        test_all(report, grouped(prepared), variables, given.jobs)
        if countersign.is_ours and "python" in names:
            restart.check(report.line, countersign)
    except NotStarted as error:
        report.line("FAIL", "countersign", str(error))
    finally:
        if countersign:
            countersign.stop()
    return report.end()


def interrupt(*_: object) -> None:
    """As Ctrl-C: what runs is ended, and Countersign stopped. Another signal, as `timeout` sends, does not keep it running."""
    signal.signal(signal.SIGTERM, lambda *_: None)
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    """Returns the exit code."""
    given = parse(arguments)
    names = given.names or list(suites.LIGHT if given.light else suites.ALL)
    report = Report()
    signal.signal(signal.SIGTERM, interrupt)
    subprocess.run([sys.executable, str(suites.HERE / "check-snippets")], check=True, timeout=60)
    try:
        return play(report, given, names)
    except KeyboardInterrupt:
        report.line("FAIL", "all", "interrupted")
        return report.end()
