from countersign_client.prefect import Countersign, ask
from prefect import flow


@flow
def ship(order: int):
    countersign = Countersign.load("countersign")  # a block: address and key
    decision = ask(countersign, f"Ship order {order}?", "grace@example.com", notify=True)
    print("approved by", decision.decided_by)


if __name__ == "__main__":
    ship(4711)
