from airflow.sdk import DAG, task
from countersign_airflow.operators import CountersignApprovalOperator

with DAG("order", schedule=None) as dag:
    question = CountersignApprovalOperator(  # the connection countersign_default has address and key
        task_id="ask",
        title="Ship order 4711?",
        approver="grace@example.com",
        notify=True,
    )

    @task
    def ship(decision):
        return f"approved by {decision['decided_by']}"

    ship(question.output)
