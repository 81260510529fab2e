"""What the plays share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from people import People


@pytest.fixture
def people() -> Iterator[People]:
    people = People()
    yield people
    people.close()
