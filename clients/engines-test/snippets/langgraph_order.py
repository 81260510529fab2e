import sqlite3
from typing import TypedDict

from countersign_client import Client
from countersign_client.langgraph import ask, wait_and_resume
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

countersign = Client()  # COUNTERSIGN_URL and COUNTERSIGN_KEY


class State(TypedDict):
    order: int
    approved_by: str


def ask_grace(state: State):
    decision = ask(countersign, f"Ship order {state['order']}?", "grace@example.com", notify=True)
    return {"approved_by": decision.decided_by}


builder = StateGraph(State).add_node(ask_grace).add_edge(START, "ask_grace")
graph = builder.compile(checkpointer=SqliteSaver(sqlite3.connect("graph.db", check_same_thread=False)))
config = {"configurable": {"thread_id": "order-4711"}}

if not graph.get_state(config).interrupts:  # after a restart it goes on with the question that it asked
    graph.invoke({"order": 4711}, config)
print("approved by", wait_and_resume(countersign, graph, config)["approved_by"])
