"""Client and worker for Rota, the scheduler for AI agents. Standard library only.

    import rota

    client = rota.Client("http://127.0.0.1:7682")
    task = client.wait(client.submit(agent="shout", message="hello")["taskId"])
    print(task["state"], task["result"])
"""

from ._client import Client
from ._context import Context
from ._errors import Cancelled, ConnectionFailed, PermanentError, RetryLater, RotaError
from ._worker import Worker

__all__ = [
    "Cancelled",
    "Client",
    "ConnectionFailed",
    "Context",
    "PermanentError",
    "RetryLater",
    "RotaError",
    "Worker",
]
__version__ = "0.1.0"
