from countersign_client import Client, Rejected

with Client() as countersign:  # COUNTERSIGN_URL and COUNTERSIGN_KEY
    try:
        decision = countersign.ask("Ship order 4711?", "grace@example.com", notify=True)
        print(f"approved by {decision.decided_by}: {decision.comment}")
    except Rejected as rejected:
        print(f"rejected: {rejected.decision.comment}")
