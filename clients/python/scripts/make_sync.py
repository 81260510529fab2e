"""Makes the blocking client from the asynchronous one: `python scripts/make_sync.py`, with `--check` to compare only."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "countersign_client"
SOURCE, TARGET = PACKAGE / "_async_client.py", PACKAGE / "_client.py"

REPLACEMENTS = (
    (r'^"""The client for asynchronous.*?"""', '"""Made from `_async_client.py` by `scripts/make_sync.py`: edit that."""'),
    (r", from asynchronous code\. Tasks of one event loop can share it\.", ". Threads can share it."),
    (r"Callable\[\[Task\], Awaitable\[object\] \| object\]", "Callable[[Task], object]"),
    (r"AsyncIterator, Awaitable, Callable, Iterable, Sequence", "Callable, Iterable, Iterator, Sequence"),
    (r"\basync (def|for|with) ", r"\1 "),
    (r"\bawait ", ""),
    (r"\brun_async\b", "run"),
    (r"\baclose\b", "close"),
    (r"__a(enter|exit)__", r"__\1__"),
    (r"\bhttpx\.AsyncClient\b", "httpx.Client"),
    (r"\bAsync(Client|Session|Webhooks|Iterator)\b", r"\1"),
)


def make_sync(text: str) -> str:
    """The text of the blocking client."""
    for pattern, replacement in REPLACEMENTS:
        text, changes = re.subn(pattern, replacement, text)
        if not changes:
            raise SystemExit(f"nothing matches {pattern}")
    return text


def main() -> None:
    """Writes the file, or compares it."""
    made = make_sync(SOURCE.read_text())
    if "--check" not in sys.argv:
        TARGET.write_text(made)
    # The formatter joins lines that are shorter here.
    elif ast.dump(ast.parse(TARGET.read_text())) != ast.dump(ast.parse(made)):
        raise SystemExit("_client.py is not what scripts/make_sync.py makes: run it")


if __name__ == "__main__":
    main()
