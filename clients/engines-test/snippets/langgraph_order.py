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

state = graph.get_state(config)
if state.next or not state.values:  # after a restart it goes on with the question that it asked, and after its end it asks none
    graph.invoke(None if state.next else {"order": 4711}, config, durability="sync")
    wait_and_resume(countersign, graph, config)
print("approved by", graph.get_state(config).values["approved_by"])
