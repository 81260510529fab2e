"""The checks. Each yields what it tried, and raises `Failed` if that does not work."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import system
from packages import Packages
from processes import Failed, Process, clean_environment, run, tail, write_private
from servers import ROOT, PgBouncer, Postgres, RabbitMq
from system import Programs, System

# What a check is called, and what does it and says what it found.
Check = tuple[str, Callable[[], str]]

SESSION_MODE = "must be in session mode"
LOCALE = "makes another letter than i of I"

# Migrations and stores: lists, audit logs, erasure, batches, plans, idempotency, quotas, and dumps. Not what inserts a
# million rows, and not German messages, which these builds of Postgres do not have.
SQL_TESTS = """
(package(database) | package(listing) | package(jobs) | package(audit-log) | test(/^schema_tests::/)
| package(user-service) & test(/^(audit_append_only|audit_partitions|audit_list|list_users|long_lists|incarnation|keys|users)::/)
| package(people-task-service) & test(/^(added_columns|all_deliveries|audit_partitions|creations|decide|delivery_hosts)::/)
| package(people-task-service) & test(/^(due_dates_upgrade|erasure|erasure_batches|idempotency|list_tasks|long_lists)::/)
| package(people-task-service) & test(/^(plans|quotas|versions|webhooks)::/))
- test(/a_million/) - test(/translated_message/)
"""
LEFT_OUT = {
    # They read how often an index was used, which a server of 14 does not tell in time.
    14: "_by_its_indexes|has_an_index|have_an_index|at_most_a_thousand|reads_only_the|read_only_their_own|reads_few_of",
    # They restore into tables that exist, which pg_dump of 16.2 cannot: it drops indexes of partitions, one by one.
    16: "a_restore_in_one_transaction|a_restore_into_the_same_database|after_a_restore_keys",
}
# What depends on the order, the case and the time of the server.
LOCALE_TESTS = """
package(listing) & kind(test) | package(user-service) & test(/^(list_users|sign_in)::/)
| package(people-task-service) & test(/^(list_tasks|due_dates|idempotency)::/)
"""
# In the locale C, only the letters of ASCII have another case.
WITHOUT_CASE = "- test(/without_regard_to_accents/)"
BROKER_TESTS = """
package(messaging) | package(user-service) & test(/^(deletion_worker|notification_worker)::/)
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
        command = [*self._with_clients(postgres), "cargo", "nextest", "run", *self._built_tests(), "--no-fail-fast"]
        command += ["-E", " ".join(selection.split())]
        variables = clean_environment(COUNTERSIGN_TEST_SERVERS=str(file), TZ=zone, CARGO_TERM_COLOR="never")
        code = Process(command, log, variables, cwd=self.sources).wait(3600)
        text = log.read_text(errors="replace")
        summary = re.findall(r"Summary .*?(\d+) tests? run: (\d+) passed", text)
        failed = re.findall(r"^ +(?:FAIL|TIMEOUT|LEAK-FAIL|SIG\w+|ABORT).*?\] (?:\( *\d+/\d+\) )?(.*)$", text, re.MULTILINE)
        if not summary:
            raise Failed(f"no test ran: {tail(log)}")
        if code != 0 or summary[-1][0] != summary[-1][1]:
            raise Failed(f"{summary[-1][1]} of {summary[-1][0]} tests passed; not passed: {', '.join(sorted(set(failed)))}")
        return f"{summary[-1][1]} tests passed"

    def _built_tests(self) -> list[str]:
        """Builds the tests once, so that all servers are tried with the same ones."""
        files = {"--binaries-metadata": self.folder / "binaries.json", "--cargo-metadata": self.folder / "cargo.json"}
        lists = [
            ["nextest", "list", "--workspace", "--locked", "--list-type=binaries-only", "--message-format=json"],
            ["metadata", "--locked", "--format-version=1"],
        ]
        for file, command in zip(files.values(), lists):
            if not file.exists():
                file.write_text(run(["cargo", *command], 5400, cwd=self.sources, env=clean_environment()))
        return [str(part) for option in files.items() for part in option]

    def _with_clients(self, postgres: Postgres) -> list[str]:
        """The tests take pg_dump from the newest Postgres of the machine. In a namespace of their own, this is that one."""
        newest = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda it: int(it.parent.name))
        if postgres.clients == newest:
            return []
        folder = self.new_folder("clients")
        folder.mkdir()
        for program in [*postgres.clients.iterdir(), postgres.programs / "initdb", postgres.programs / "postgres"]:
            if not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
        return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', str(folder), str(newest)]


def dumps(matrix: Matrix) -> Iterator[Check]:
    """Rows of each version, dumped and restored into each later one by deploy/backup."""
    programs, broker = matrix.programs(), matrix.broker()
    servers: dict[int, tuple[Postgres, System]] = {}

    def fill(major: int) -> str:
        postgres = matrix.postgres(major)
        postgres.create("countersign")
        system.migrate(programs, postgres, "countersign")
        made = matrix.system(programs, postgres, "countersign", broker)
        made.start()
        system.use(made)
        system.look(made)
        made.stop()
        servers[major] = postgres, made
        return f"{sum(count for count, _ in rows(postgres, 'countersign').values())} rows; {postgres.version}"

    def move(old: int, new: int) -> str:
        (source, made), (target, _) = servers[old], servers[new]
        database = f"from_{old}"
        target.create(database)
        dumped = matrix.new_folder("dumps")
        backup(target, source.url("countersign"), "dump", dumped)
        [file] = dumped.glob("*.dump")
        backup(target, target.url(database), "restore", file)
        before, after = rows(source, "countersign"), rows(target, database)
        if before != after:
            raise Failed(f"other rows in {', '.join(name for name in before if before[name] != after.get(name))}")
        system.migrate(programs, target, database)
        if before != rows(target, database):
            raise Failed("migrating again changed rows")
        again = matrix.system(programs, target, database, broker, secrets=made.secrets)
        again.start()
        system.look(again)
        again.stop()
        filled = [count for count, _ in after.values() if count]
        return f"{sum(filled)} rows of {len(filled)} tables are the same"

    for major in matrix.versions:
        yield f"Postgres {major}: migrate, use", partial(fill, major)
    for old in matrix.versions:
        for new in matrix.versions:
            if old <= new and {old, new} <= servers.keys():
                yield f"dump of {old} → {new}", partial(move, old, new)


def backup(target: Postgres, url: str, *arguments: object) -> None:
    """Runs deploy/backup with the client programs of the server that gets the rows."""
    path = f"{target.clients}:{os.environ['PATH']}"
    variables = clean_environment(PATH=path, BACKUP_DATABASE_URL=url)
    run([ROOT / "deploy/backup", *arguments], env=variables)


# For each table, how many rows it has, and a hash of them.
ROWS = r"""
SELECT format(
    'SELECT %L, count(*), md5(coalesce(string_agg(t::text, chr(10) ORDER BY t::text COLLATE "C"), '''')) FROM %s AS t',
    oid::regclass, oid::regclass)
FROM pg_class WHERE relnamespace IN ('users'::regnamespace, 'people_task'::regnamespace)
    AND relkind IN ('r', 'p') AND NOT relispartition
ORDER BY 1 \gexec
"""


def rows(postgres: Postgres, database: str) -> dict[str, tuple[int, str]]:
    file = postgres.folder / "rows.sql"
    file.write_text(ROWS)
    lines = [line.split("|") for line in postgres.psql("--file", file, database=database).splitlines()]
    return {name: (int(count), digest) for name, count, digest in lines}


def poolers(matrix: Matrix) -> Iterator[Check]:
    """PgBouncer in session mode works. In its other modes, every process refuses to start, and to migrate."""
    programs, broker, postgres = matrix.programs(), matrix.broker(), matrix.postgres(matrix.usual)

    def works(release: str) -> str:
        database = f"session_{release}"
        postgres.create(database)
        system.migrate(programs, postgres, database)
        pooler = PgBouncer(matrix.packages, release, "session", matrix.new_folder("pgbouncer"), postgres)
        pooled = matrix.system(programs, postgres, database, broker, port=pooler.port)
        pooled.start(tuple(pooled.variables))
        system.use(pooled, tasks=48)
        system.look(pooled)
        pooled.stop()
        pooler.stop()
        return f"PgBouncer {pooler.version}: all processes start and decide"

    def refuses(release: str, mode: str) -> str:
        database = f"{mode}_{release}"
        postgres.create(database)
        system.migrate(programs, postgres, database)
        pooler = PgBouncer(matrix.packages, release, mode, matrix.new_folder("pgbouncer"), postgres)
        pooled = matrix.system(programs, postgres, database, broker, port=pooler.port)
        names = [name for name in pooled.variables if name != "gateway"]
        refusals = {name: pooled.refusal(name) for name in names}
        for service, owner in (("user-service", "users_owner"), ("people-task-service", "people_task_owner")):
            refusals[f"{service} migrate"] = refusal(programs, service, postgres.url(database, owner, pooler.port))
        expect(refusals, SESSION_MODE)
        pooler.stop()
        return f"PgBouncer {pooler.version}: {len(refusals)} of {len(refusals)} commands refused"

    for release in ("host", "trixie", "sid"):
        yield f"PgBouncer of {release}, session mode", partial(works, release)
        for mode in ("transaction", "statement"):
            yield f"PgBouncer of {release}, {mode} mode is refused", partial(refuses, release, mode)


def refusal(programs: Programs, service: str, owner_url: str) -> str:
    """What a migration says that fails."""
    try:
        programs.migrate(service, owner_url)
    except Failed as failed:
        return str(failed)
    return "it migrated"


def expect(refusals: dict[str, str], message: str) -> None:
    for name, said in refusals.items():
        if message not in said:
            raise Failed(f'{name} does not say "{message}": {said}')


def locales(matrix: Matrix) -> Iterator[Check]:
    """Servers of other languages and time zones."""
    broker = matrix.broker()
    icu = ("--locale-provider=icu", "--locale=C.UTF-8")
    chosen = [
        ("C", "UTC", ("--locale=C",)),
        ("C.UTF-8", "Asia/Kolkata", ("--locale=C.UTF-8",)),
        ("en_US.UTF-8", "America/St_Johns", ("--locale=en_US.UTF-8",)),
        ("de_DE.UTF-8", "Asia/Kolkata", ("--locale=de_DE.UTF-8",)),
        ("ICU und", "America/St_Johns", (*icu, "--icu-locale=und")),
        ("ICU de-DE", "Asia/Kolkata", (*icu, "--icu-locale=de-DE")),
    ]
    if matrix.usual >= 17:
        chosen.append(("builtin C.UTF-8", "UTC", ("--locale-provider=builtin", "--locale=C.UTF-8")))
    turkish = [("tr_TR.UTF-8", ("--locale=tr_TR.UTF-8",)), ("ICU tr-TR", (*icu, "--icu-locale=tr-TR"))]

    def server(zone: str, initdb: tuple[str, ...], name: str) -> Postgres:
        folder = matrix.packages.locale(name) if re.fullmatch(r".._..\.UTF-8", name) else None
        return matrix.postgres(matrix.usual, initdb=initdb, zone=zone, locales=folder)

    def passes(name: str, zone: str, initdb: tuple[str, ...]) -> str:
        postgres = server(zone, initdb, name)
        selection = f"({LOCALE_TESTS}) {WITHOUT_CASE if name == 'C' else ''}"
        passed = matrix.nextest(selection, postgres, broker, zone)
        postgres.stop()
        return f"{passed}; {postgres.version}"

    def refuses(name: str, initdb: tuple[str, ...]) -> str:
        postgres = server("UTC", initdb, name)
        postgres.create("countersign")
        programs = matrix.programs()
        said = {
            "user-service": refusal(programs, "user-service", postgres.url("countersign", "users_owner")),
            "people-task-service": refusal(programs, "people-task-service", postgres.url("countersign", "people_task_owner")),
        }
        expect(said, LOCALE)
        postgres.stop()
        return "both services refuse to migrate"

    for name, zone, initdb in chosen:
        yield f"{name}, {zone}", partial(passes, name, zone, initdb)
    for name, initdb in turkish:
        yield f"{name} is refused", partial(refuses, name, initdb)


def brokers(matrix: Matrix) -> Iterator[Check]:
    """The tests of messages and of workers, and a decision from end to end, with each RabbitMQ."""
    programs, postgres = matrix.programs(), matrix.postgres(matrix.usual)

    def works(release: str) -> str:
        broker = matrix.broker(release)
        database = f"broker_{release}"
        postgres.create(database)
        system.migrate(programs, postgres, database)
        used = matrix.system(programs, postgres, database, broker)
        used.start(tuple(used.variables))
        system.deliver(used)
        used.stop()
        broker.stop()
        return f"RabbitMQ {broker.version}: all processes start, a decision is delivered, a user is deleted"

    def passes(release: str) -> str:
        broker = matrix.broker(release)
        server = matrix.postgres(matrix.usual)
        passed = matrix.nextest(BROKER_TESTS, server, broker)
        server.stop()
        broker.stop()
        return f"RabbitMQ {broker.version}: {passed}"

    for release in ("host", "trixie", "sid"):
        yield f"RabbitMQ of {release}, system", partial(works, release)
    for release in ("host", "trixie", "sid"):
        yield f"RabbitMQ of {release}, tests", partial(passes, release)


def tests(matrix: Matrix) -> Iterator[Check]:
    """The tests of stores and migrations, with each Postgres."""
    broker = matrix.broker()

    def passes(major: int) -> str:
        postgres = matrix.postgres(major)
        left_out = f"- test(/{LEFT_OUT[major]}/)" if major in LEFT_OUT else ""
        passed = matrix.nextest(SQL_TESTS + left_out, postgres, broker)
        postgres.stop()
        return f"{passed}; {postgres.version}"

    for major in matrix.versions:
        yield f"Postgres {major}", partial(passes, major)


# In the order in which they run.
ALL = {"dumps": dumps, "poolers": poolers, "locales": locales, "brokers": brokers, "tests": tests}
