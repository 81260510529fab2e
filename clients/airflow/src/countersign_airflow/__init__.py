"""Questions to people in Airflow: a hook, a connection type, a deferrable operator and a trigger for Countersign."""

from __future__ import annotations

from typing import Any

__version__ = "0.3.0"


def get_provider_info() -> dict[str, Any]:
    """What Airflow reads to find the parts of this package."""
    integration = "Countersign"
    return {
        "package-name": "airflow-provider-countersign",
        "name": "Countersign",
        "description": "Asks people for decisions.",
        "versions": [__version__],
        "integrations": [{"integration-name": integration, "tags": ["service"]}],
        "hooks": [{"integration-name": integration, "python-modules": ["countersign_airflow.hooks"]}],
        "operators": [{"integration-name": integration, "python-modules": ["countersign_airflow.operators"]}],
        "triggers": [{"integration-name": integration, "python-modules": ["countersign_airflow.triggers"]}],
        "connection-types": [
            {
                "hook-class-name": "countersign_airflow.hooks.CountersignHook",
                "hook-name": "Countersign",
                "connection-type": "countersign",
                "ui-field-behaviour": {
                    "hidden-fields": ["schema", "port", "extra"],
                    "relabeling": {"host": "Address", "login": "Requester", "password": "API key"},
                    "placeholders": {
                        "host": "https://countersign.example.com",
                        "login": "flows@example.com, by default the address of the key's account",
                        "password": "csk_…",
                    },
                },
            }
        ],
    }
