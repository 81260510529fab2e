"""Private servers on loopback: Postgres, PgBouncer and RabbitMQ, each in a folder of its own."""

from __future__ import annotations

import base64
import json
import os
import signal
import urllib.request
from pathlib import Path

from packages import Packages
from processes import Failed, Process, accepts, clean_environment, free_ports, password, run, unprivileged, write_private

ROOT = Path(__file__).resolve().parents[2]
ROLES = ["users_owner", "users_service", "people_task_owner", "people_task_service"]


class Postgres:
    """A server whose data may be lost, and the four roles of Countersign."""

    def __init__(
        self, packages: Packages, major: int, folder: Path, initdb: tuple[str, ...] = ("--locale=C.UTF-8",), zone: str = "UTC",
        locales: Path | None = None,
    ) -> None:  # fmt: skip
        self.major, self.folder = major, folder
        self.programs, self.clients = packages.postgres(major), packages.clients(major)
        self.password, self.passwords = password(), {role: password() for role in ROLES}
        [self.port] = free_ports(1)
        folder.mkdir(mode=0o755)
        data, user = folder / "data", unprivileged()
        data.mkdir(mode=0o700)
        secret = write_private(folder / "password", self.password, user)
        if user:
            os.chown(data, user["user"], user["group"])
        variables = clean_environment(**({"LOCPATH": str(locales)} if locales else {}))
        create = [self.programs / "initdb", "-D", data, "--username=postgres", "--auth=password", "--encoding=UTF8"]
        run([*create, "--pwfile", secret, "--no-sync", *initdb], env=variables, cwd=data, **user)
        secret.unlink()
        settings = [
            "listen_addresses=127.0.0.1", f"port={self.port}", "unix_socket_directories=", "max_connections=400",
            f"timezone={zone}", "log_timezone=UTC", "fsync=off", "full_page_writes=off", "lc_messages=C",
            "log_min_messages=warning",
        ]  # fmt: skip
        options = [part for setting in settings for part in ("-c", setting)]
        server = [self.programs / "postgres", "-D", data, *options]
        # The signal is that of a fast shutdown.
        self.process = Process(server, folder / "postgres.log", variables, signal.SIGINT, cwd=data, **user)
        self.process.wait_until(self._answers)
        self.version = self.query("SHOW server_version")

    def url(self, database: str, role: str = "postgres", port: int | None = None) -> str:
        secret = self.password if role == "postgres" else self.passwords[role]
        return f"postgres://{role}:{secret}@127.0.0.1:{port or self.port}/{database}?sslmode=disable&gssencmode=disable"

    def psql(self, *arguments: object, database: str = "postgres", variables: dict[str, str] | None = None) -> str:
        target = f"postgres://postgres@127.0.0.1:{self.port}/{database}?sslmode=disable&gssencmode=disable"
        command = [self.clients / "psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--dbname", target]
        environment = clean_environment(PGPASSWORD=self.password, PGTZ="UTC", PGCONNECT_TIMEOUT="5", **(variables or {}))
        return run([*command, "--set", "ON_ERROR_STOP=1", *arguments], env=environment)

    def query(self, sql: str, database: str = "postgres") -> str:
        return self.psql("--command", sql, database=database)

    def create(self, database: str) -> None:
        """A database that is prepared as operators do it."""
        self.query(f"CREATE DATABASE {database} ENCODING 'UTF8' TEMPLATE template0")
        passwords = {f"{role.upper()}_PASSWORD": secret for role, secret in self.passwords.items()}
        self.psql("--file", ROOT / "deploy/postgres/bootstrap.sql", database=database, variables=passwords)

    def stop(self) -> None:
        self.process.stop()

    def _answers(self) -> bool:
        return accepts(self.port) and self._can_query()

    def _can_query(self) -> bool:
        try:
            return self.query("SELECT 1") == "1"
        except Failed:
            return False


class PgBouncer:
    """A pooler in front of a server."""

    def __init__(self, packages: Packages, release: str, mode: str, folder: Path, postgres: Postgres) -> None:
        folder.mkdir(mode=0o755)
        program, user = packages.pgbouncer(release), unprivileged()
        [self.port] = free_ports(1)
        users = "".join(f'"{role}" "{secret}"\n' for role, secret in postgres.passwords.items())
        users = write_private(folder / "users.txt", users, user)
        settings = f"""
[databases]
* = host=127.0.0.1 port={postgres.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = plain
auth_file = {users}
pool_mode = {mode}
default_pool_size = 100
max_client_conn = 500
"""
        file = write_private(folder / "pgbouncer.ini", settings, user)
        self.version = run([program, "--version"]).split()[1]
        log = folder / "pgbouncer.log"
        self.process = Process([program, file], log, clean_environment(), signal.SIGINT, cwd="/", **user)
        self.process.wait_until(lambda: accepts(self.port))

    def stop(self) -> None:
        self.process.stop()


class RabbitMq:
    """A broker with the management plugin. It and its port mapper have a namespace of their own, and end with it."""

    def __init__(self, packages: Packages, release: str, folder: Path) -> None:
        root = packages.root(release)
        if root != Path("/"):
            # Its data are inside of the root.
            folder = root / "srv" / folder.name
        folder.mkdir(mode=0o700, parents=True)
        self.folder, self.password = folder, password()
        self.port, self.management, distribution, mapper = free_ports(4)
        inside = Path("/") / folder.relative_to(root)
        settings = f"""
listeners.tcp.1 = 127.0.0.1:{self.port}
management.tcp.ip = 127.0.0.1
management.tcp.port = {self.management}
default_user = countersign
default_pass = {self.password}
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 10MB
log.file = false
log.console = true
log.console.level = warning
"""
        write_private(folder / "rabbitmq.conf", settings)
        (folder / "enabled_plugins").write_text("[rabbitmq_management].\n")
        (folder / "rabbitmq-env.conf").touch()
        variables = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": inside, "ERL_EPMD_PORT": mapper,
            "ERL_EPMD_ADDRESS": "127.0.0.1", "RABBITMQ_NODENAME": f"matrix-{self.port}@localhost",
            "RABBITMQ_DIST_PORT": distribution, "RABBITMQ_CONF_ENV_FILE": inside / "rabbitmq-env.conf",
            "RABBITMQ_CONFIG_FILE": inside / "rabbitmq.conf", "RABBITMQ_ENABLED_PLUGINS_FILE": inside / "enabled_plugins",
            "RABBITMQ_MNESIA_BASE": inside / "data", "RABBITMQ_LOG_BASE": inside / "log",
            "RABBITMQ_PID_FILE": inside / "node.pid",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }  # fmt: skip
        [server] = root.glob("usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server")
        server = Path("/") / server.relative_to(root)
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--root", root, "--wd", inside, "--mount-proc"]
        variables = {name: str(value) for name, value in variables.items()}
        # What its namespace has ends with it, and its data are not needed.
        self.process = Process([*apart, server], folder / "rabbitmq.log", variables, signal.SIGKILL)
        self.process.wait_until(self._answers, 120)
        self.version = self._overview()["rabbitmq_version"]

    @property
    def url(self) -> str:
        return f"amqp://countersign:{self.password}@127.0.0.1:{self.port}/%2f"

    def description(self) -> dict[str, str]:
        management = f"http://127.0.0.1:{self.management}"
        return {"amqpUrl": self.url, "managementUrl": management, "username": "countersign", "password": self.password}

    def stop(self) -> None:
        self.process.stop()

    def _overview(self) -> dict[str, object]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.management}/api/overview")
        credentials = base64.b64encode(f"countersign:{self.password}".encode()).decode()
        request.add_header("Authorization", f"Basic {credentials}")
        with urllib.request.urlopen(request, timeout=5) as response:
            return json.load(response)

    def _answers(self) -> bool:
        try:
            return accepts(self.port) and bool(self._overview())
        except OSError:
            return False
