"""The connection to Countersign."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseHook
from countersign_client import AsyncClient, Client, CountersignError

USER_AGENT = "airflow-provider-countersign"


class CountersignHook(BaseHook):
    """Makes clients from a connection of the type ``countersign``.

    Its host is the address of Countersign (``https://…``), its password an API key, and its login the address in whose name is
    asked, by default the one of the key's account.
    """

    conn_name_attr = "countersign_conn_id"
    default_conn_name = "countersign_default"
    conn_type = "countersign"
    hook_name = "Countersign"

    def __init__(self, countersign_conn_id: str = default_conn_name, **options: Any) -> None:
        super().__init__()
        self.countersign_conn_id = countersign_conn_id
        self.options = options

    def get_conn(self) -> Client:
        """A client. Close it, or use it in a ``with`` block."""
        return Client(**self._arguments(self.get_connection(self.countersign_conn_id)))

    async def aget_conn(self) -> AsyncClient:
        """A client for asynchronous code."""
        return AsyncClient(**self._arguments(await self.aget_connection(self.countersign_conn_id)))

    def test_connection(self) -> tuple[bool, str]:
        """Whether the server takes the key."""
        try:
            with self.get_conn() as client:
                count = client.count()
        except (CountersignError, ValueError) as error:
            return False, str(error)
        return True, f"The key sees {count} tasks."

    def _arguments(self, connection: Any) -> dict[str, Any]:
        return {
            "url": address_of(connection),
            "key": connection.password,
            "requester": connection.login or None,
            "user_agent": USER_AGENT,
            **self.options,
        }

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """The fields of the form for connections."""
        return {
            "hidden_fields": ["schema", "port", "extra"],
            "relabeling": {"host": "Address", "login": "Requester", "password": "API key"},
            "placeholders": {"host": "https://countersign.example.com", "password": "csk_…"},
        }


def address_of(connection: Any) -> str:
    """The address of a connection whose host is one, or only a name."""
    host = connection.host or ""
    if not host:
        raise ValueError("The connection needs the address of Countersign as its host.")
    if "://" in host:
        return host
    port = f":{connection.port}" if connection.port else ""
    return f"{connection.schema or 'https'}://{host}{port}"
