"""Asks, and decides when it is told to: run by engines/restart.py."""

import sys
import threading

from people import People

people = People()


def decide() -> None:
    task = people.only_task()
    print("waiting", flush=True)
    sys.stdin.readline()
    people.client.approve(task, comment="After the restart.")


threading.Thread(target=decide, daemon=True).start()
decision = people.client.ask("Go on after a restart?", "grace@example.com", timeout=200)
print(f"{decision.status}: {decision.comment}")
