"""The examples of the README, with the fake server."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from countersign_client import Client, Task

from .fake import KEY, Fake

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def example(text: str) -> Any:
    (found,) = [block for block in BLOCKS if text in block]
    return compile(found, "README.md", "exec")


@pytest.mark.parametrize(
    ("status", "shown"), [("approved", "grace@example.com approved: Fine.\n"), ("rejected", "Not now: Fine.\n")]
)
def test_the_first_example(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: str, shown: str
) -> None:
    monkeypatch.setenv("COUNTERSIGN_URL", fake.url)
    monkeypatch.setenv("COUNTERSIGN_KEY", KEY)

    def decide() -> None:
        fake.until(lambda: any("wait" in seen.query for seen in fake.seen))
        fake.decide(next(iter(fake.tasks)), status, "Fine.")

    thread = threading.Thread(target=decide)
    thread.start()
    exec(example("Deploy 1.4 to production?"), {})
    thread.join()
    assert capsys.readouterr().out == shown


def test_the_calls(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    original = fake.create
    fake.create = lambda seen: decided(fake, original(seen))  # type: ignore[method-assign]
    with Client(fake.url, KEY) as countersign:
        names: dict[str, Any] = {"countersign": countersign}
        with pytest.raises(Exception, match="task-already-resolved"):
            exec(example("Pay invoice 4711"), names)
        assert names["decision"].approved
        assert fake.seen[0].body["metadata"] == {"invoice": 4711}
        assert [seen.path.split("/")[-1] for seen in fake.seen][-1] == "cancel"
        fake.create = original  # type: ignore[method-assign]
        task: Task = countersign.create("Other?", "grace@example.com")
        exec(example("webhooks.register"), {"countersign": countersign, "task": task})
        assert fake.webhooks == {}


def decided(fake: Fake, result: Any) -> Any:
    fake.decide(list(fake.tasks)[-1], "approved")
    return result


def test_the_examples_are_python() -> None:
    for block in BLOCKS:
        # A receiver's example returns, as it does in its function.
        compile("def receive():\n" + "".join(f"    {line}\n" for line in block.splitlines()), "README.md", "exec")
    assert len(BLOCKS) >= 6
