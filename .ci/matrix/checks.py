"""The checks. Each yields what it tried, and raises `Failed` if that does not work."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import system
from packages import Packages
from processes import Failed, clean_environment, run, stop_all, tail, write_private
from servers import ROOT, PgBouncer, Postgres, RabbitMq
from system import Programs, System

# What a check is called, and what does it and says what it found.
Check = tuple[str, Callable[[], str]]

SESSION_MODE = "must be in session mode"
LOCALE = "makes another letter than i of I"

# Everything that runs SQL, but what measures time or inserts a million rows.
SQL_TESTS = """
(package(database) | package(listing) | package(audit-log) | package(jobs) | package(user-service) | package(people-task-service))
& kind(test) - test(/a_million/) - test(/fairness/) | (package(jobs) | package(audit-log) | package(listing)) & kind(lib)
"""
# What depends on the order, the case and the time of the server.
LOCALE_TESTS = """
(package(database) | package(listing)) & kind(test) | package(user-service) & test(/^(list_users|sign_up|sign_in|audit_list|users)::/)
| package(people-task-service) & test(/^(list_tasks|due_dates|metadata|idempotency)::/)
"""
BROKER_TESTS = """
package(messaging) | package(user-service) & test(/^(deletion_worker|notification_worker|revocations)::/)
| package(people-task-service) & test(/^webhook_worker::/) - test(/fairness/)
"""


@dataclass
class Matrix:
    """What all checks share."""

    packages: Packages
    folder: Path
    programs_folder: Path
    sources: Path
    versions: list[int]
    count: int = 0

    def new_folder(self, name: str) -> Path:
        self.count += 1
        return self.folder / f"{self.count}-{name}"

    def postgres(self, major: int, **options: object) -> Postgres:
        return Postgres(self.packages, major, self.new_folder(f"postgres-{major}"), **options)

    def broker(self, release: str = "host") -> RabbitMq:
        return RabbitMq(self.packages, release, self.new_folder("rabbitmq"))

    def programs(self) -> Programs:
        return Programs(self.programs_folder, self.new_folder("programs"))

    def system(self, programs: Programs, postgres: Postgres, database: str, broker: RabbitMq, **options: object) -> System:
        return System(programs, self.new_folder("system"), postgres, database, broker, **options)

    @property
    def usual(self) -> int:
        """The major of docker-compose.yml, for checks of something else."""
        return 17 if 17 in self.versions else max(self.versions)

    def nextest(self, selection: str, postgres: Postgres, broker: RabbitMq, zone: str = "UTC") -> str:
        """Runs tests on these servers. Returns how many passed."""
        postgres.create("countersign")
        passwords = {re.sub("_(.)", lambda found: found[1].upper(), role): it for role, it in postgres.passwords.items()}
        servers = {"postgres": {"adminUrl": postgres.url("postgres"), "passwords": passwords}, "rabbitmq": broker.description()}
        file = write_private(self.new_folder("servers.json"), json.dumps(servers))
        log = self.new_folder("tests.log")
        command = ["cargo", "nextest", "run", "--workspace", "--locked", "--no-fail-fast", "-E", " ".join(selection.split())]
        # The tests take pg_dump from the newest Postgres of the machine: in their namespace that is this one.
        clients = self.new_folder("clients")
        clients.mkdir()
        newest = max(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda it: int(it.parts[4])).parent
        for program in {*newest.iterdir(), *postgres.clients.iterdir()}:
            (clients / program.name).unlink(missing_ok=True)
            (clients / program.name).symlink_to(program if program.parent != newest else f"/dev/null/{program.name}")
        apart = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', clients, newest]
        variables = clean_environment(COUNTERSIGN_TEST_SERVERS=str(file), TZ=zone, CARGO_TERM_COLOR="never")
        with log.open("wb") as output:
            done = subprocess.run([str(it) for it in [*apart, *command]], cwd=self.sources, env=variables, stdin=subprocess.DEVNULL,
                                  stdout=output, stderr=subprocess.STDOUT, timeout=3600)  # fmt: skip
        text = log.read_text(errors="replace")
        summary = re.findall(r"Summary .*?(\d+) tests? run: (\d+) passed", text)
        failed = sorted(set(re.findall(r"^ +(?:FAIL|TIMEOUT|LEAK-FAIL|SIGABRT|ABORT).*?\] (?:\( *\d+/\d+\) )?(.*)$", text, re.M)))
        if not summary:
            raise Failed(f"no test ran: {tail(log)}")
        if done.returncode != 0 or summary[-1][0] != summary[-1][1]:
            raise Failed(f"{summary[-1][1]} of {summary[-1][0]} tests passed; not passed: {', '.join(failed)}")
        return f"{summary[-1][1]} tests passed"
