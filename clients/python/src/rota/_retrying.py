"""When a worker repeats a request, and how long it waits before."""

from __future__ import annotations

import random
from typing import Union

from ._errors import ConnectionFailed, RotaError


def is_passing(error: Union[RotaError, ConnectionFailed]) -> bool:
    """All requests of a worker are idempotent, so every failure of the server is a reason to repeat them."""
    if isinstance(error, RotaError) and error.code == "unknown_worker":
        return True
    return error.status is None or error.status in (408, 429) or error.status >= 500


def backoff(failures: int, error: Union[RotaError, ConnectionFailed]) -> float:
    own = min(0.2 * 2 ** min(failures - 1, 10), 5.0) * (0.5 + random.random() / 2)
    asked = error.retry_after if isinstance(error, RotaError) else None
    return own if asked is None else max(own, jittered(asked))


def jittered(seconds: float) -> float:
    """Longer by up to a quarter, so that workers do not all come back at once."""
    return seconds * (1 + random.random() / 4)
