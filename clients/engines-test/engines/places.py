"""Where things are."""

from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
CLIENTS = HERE.parent
ROOT = CLIENTS.parent
ENGINES = ROOT / ".local" / "engines"
LOGS = ENGINES / "logs"
STACK = ROOT / ".local" / "stack.json"
