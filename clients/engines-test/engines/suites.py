"""What is tested for each engine, and which tests play what a flow must survive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import install
from .places import CLIENTS, HERE, LOGS

CASES = ("approved", "rejected", "due", "cancelled", "repeated", "restarted", "revoked", "forged")


@dataclass(frozen=True)
class Suite:
    """Tests that run as one program.

    ``cases`` names the tests that play each case: the case is missing if one of them did not run, or was skipped.
    """

    name: str
    command: tuple[str | Path, ...]
    folder: Path
    seconds: float
    cases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    report: Path | None = None
    """The JUnit file that the program writes, if it is one of pytest."""


def _pytest(
    name: str,
    interpreter: Path,
    folder: Path,
    *tests: str | Path,
    seconds: float,
    cases: dict[str, tuple[str, ...]],
    **variables: str,
) -> Suite:
    report = LOGS / f"{name.replace(' ', '-')}.xml"
    command = (interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests)
    return Suite(name, command, folder, seconds, cases, {**variables, "PYTHONDONTWRITEBYTECODE": "1"}, report)


def _plays(
    name: str, interpreter: Path, *files: str, seconds: float, cases: dict[str, tuple[str, ...]], **variables: str
) -> Suite:
    folder = HERE / "plays"
    return _pytest(f"{name} plays", interpreter, folder, *files, seconds=seconds, cases=cases, **variables)


def same(*cases: str) -> dict[str, tuple[str, ...]]:
    """Plays name their tests after the cases."""
    return {case: (f"test_{case}",) for case in cases}


def python() -> list[Suite]:
    interpreter = install.python("python")
    install.python_packages(interpreter, "python", "python")
    cases = {
        "approved": ("test_an_approval",),
        "rejected": ("test_a_rejection",),
        "due": ("test_a_timeout",),
        "cancelled": ("test_a_withdrawal",),
        "restarted": ("test_the_network_fails_while_a_question_waits", "test_a_restart_of_the_server_does_not_end_the_wait"),
        "revoked": ("test_a_revoked_key_ends_the_wait",),
        "forged": ("test_webhooks_and_both_signatures", "test_forged_bodies_and_replays"),
    }
    ignored = ("--ignore=tests/test_prefect.py",)
    own = _pytest("python", interpreter, CLIENTS / "python", "tests", *ignored, seconds=300, cases=cases)
    scripts = _plays(
        "python",
        interpreter,
        "test_scripts.py",
        "-k",
        "python or curl or registrations",
        seconds=120,
        cases=same("approved", "rejected"),
    )
    return [own, scripts]


def langgraph() -> list[Suite]:
    interpreter = install.python("python")
    install.python_packages(interpreter, "python", "python")
    return [_plays("langgraph", interpreter, "test_langgraph.py", seconds=180, cases=same(*CASES))]


def prefect() -> list[Suite]:
    interpreter = install.python("prefect")
    install.python_packages(interpreter, "prefect", "python")
    tests = ("tests/test_prefect.py", "tests/test_engines.py")
    own = _pytest("prefect", interpreter, CLIENTS / "python", *tests, seconds=600, cases={})
    return [own, _plays("prefect", interpreter, "test_prefect.py", seconds=900, cases=same(*CASES))]


def airflow() -> list[Suite]:
    interpreter = install.python("airflow")
    install.python_packages(interpreter, "airflow", "python", "airflow")
    cases = {
        "approved": ("test_with_a_real_server[approved]",),
        "rejected": ("test_with_a_real_server[rejected]",),
        "restarted": ("test_a_restart_of_the_triggerer_and_a_cleared_task",),
    }
    own = _pytest("airflow", interpreter, CLIENTS / "airflow", "tests", seconds=1500, cases=cases, AIRFLOW_SERVICES="1")
    played = same("approved", "rejected", "due", "cancelled", "revoked")
    return [own, _plays("airflow", interpreter, "test_airflow.py", seconds=600, cases=played)]


def js() -> list[Suite]:
    folder = install.built_node("js")
    interpreter = install.python("python")
    install.python_packages(interpreter, "js", "python")
    own = Suite("js", ("npm", "test"), folder, 300)
    scripts = _plays("js", interpreter, "test_scripts.py", "-k", "javascript", seconds=120, cases=same("approved", "rejected"))
    return [own, scripts]


def runtimes() -> list[Suite]:
    """The client of JavaScript in the oldest Node.js that it works with, and in Deno."""
    folder = install.node("js")
    variables = {
        "NODE18": str(install.runtime("node", install.node_package("18.20.8"))),
        "DENO": str(install.runtime("deno", "deno@2.9.6")),
    }
    cases = {"node18": ("it asks with Node 18",), "deno": ("it asks with Deno",)}
    return [Suite("js-runtimes", ("npm", "test", "--", "test/package.test.js"), folder, 300, cases, variables)]


def node_red() -> list[Suite]:
    install.node("js")
    folder = install.node("node-red")
    decided = ("approved, rejected with a comment, and withdrawn",)
    cases = {
        "approved": decided,
        "rejected": decided,
        "cancelled": decided,
        "due": ("due, and then decided",),
        "restarted": ("Node-RED is killed and the network fails in between",),
        "revoked": ("the key is revoked, and replaced",),
    }
    return [Suite("node-red", ("npm", "test"), folder, 420, cases)]


def mcp() -> list[Suite]:
    folder = install.node("mcp")
    interpreter = install.python("python")
    install.python_packages(interpreter, "mcp", "python")
    cases = {
        "approved": ("approved with a comment",),
        "rejected": ("rejected with a comment",),
        "due": ("a date that has passed is told",),
        "cancelled": ("withdrawn with a reason, also a second time",),
        "restarted": ("waiting survives a cut of the network", "waiting survives a restart of the server"),
        "revoked": ("a revoked key is told, without the key",),
    }
    own = Suite("mcp", ("npm", "test"), folder, 300, cases)
    return [own, _plays("mcp", interpreter, "test_mcp.py", seconds=120, cases=same("approved"))]


def n8n() -> list[Suite]:
    folder = install.node("n8n")
    engine = install.n8n()
    cases = {
        "approved": ("an approval resumes", "it goes on after an approval, and stops after a rejection"),
        "rejected": ("a rejection resumes with its comment",),
        "due": ("a due date resumes and withdraws the task, and no delivery is left over",),
        "cancelled": ("a withdrawal resumes with its reason",),
        "repeated": (
            "the repeat of a call does not resume the next wait of the same node",
            "the repeat of a call does not resume another node",
            "neither the repeat of a call nor a forged one resumes for good",
        ),
        "restarted": ("a decision while n8n starts arrives, though n8n answers 200 with a page",),
        "revoked": ("a revoked key keeps no decision away, and asks no more",),
        "forged": ("a forged call and a test call resume nothing",),
    }
    own = Suite("n8n", ("npm", "test"), folder, 420)
    real = Suite("n8n engine", ("npm", "run", "test:n8n"), folder, 1800, cases, {"N8N_FOLDER": str(engine)})
    return [own, real]


LIGHT: dict[str, Callable[[], list[Suite]]] = {
    "python": python,
    "js": js,
    "langgraph": langgraph,
    "node-red": node_red,
    "mcp": mcp,
}
HEAVY: dict[str, Callable[[], list[Suite]]] = {"js-runtimes": runtimes, "prefect": prefect, "airflow": airflow, "n8n": n8n}
ALL = {**LIGHT, **HEAVY}
