"""The client: submit, wait, schedule, say."""

from __future__ import annotations

import os
import random
import time
import uuid
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from ._errors import ConnectionFailed, RotaError
from ._http import Connection, segment

Json = Dict[str, Any]

_ENDED = ("done", "failed", "cancelled", "rejected")
#: How long the server holds its answer. Proxies often close connections that are silent for a minute.
_HOLD_SECONDS = 30


class Client:
    """A Rota server over HTTP. Tasks, schedules and sessions are dicts with the fields that docs/http.md names.

    ``url`` and ``key`` default to the variables ``ROTA_URL`` and ``ROTA_KEY``. ``task_token`` is the token of an attempt: what
    the client makes then names its task. It defaults to ``ROTA_TASK_TOKEN``, which a program that Rota runs has. A request that
    is safe to repeat is retried ``retries`` times after a temporary failure.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        key: Optional[str] = None,
        *,
        timeout: float = 30.0,
        retries: int = 3,
        task_token: Optional[str] = None,
        via: Optional[str] = None,
    ) -> None:
        token = task_token or os.environ.get("ROTA_TASK_TOKEN")
        self._connection = Connection(url, key, timeout=timeout, task_token=token, via=via)
        self._timeout = timeout
        self._retries = retries

    @property
    def url(self) -> str:
        return self._connection.url

    def close(self) -> None:
        """Closes the connection of this thread. The next request opens another."""
        self._connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------------------ tasks

    def submit(
        self,
        *,
        agent: Optional[str] = None,
        message: Optional[str] = None,
        instruction: Optional[str] = None,
        action: Optional[str] = None,
        **fields: Any,
    ) -> Json:
        """Submits a task with one of ``message``, ``instruction``, ``action`` and ``payload``, and returns its ``taskId``.

        Further fields have the names of the HTTP API: ``priority="high"``, ``sessionKey=…``, ``dependsOn=[…]``. Without an
        ``idempotencyKey`` one is made, so that a retry after a lost answer does not make a second task.
        """
        named = {"agentId": agent, "message": message, "instruction": instruction, "action": action}
        body = {**{name: value for name, value in named.items() if value is not None}, **fields}
        body.setdefault("idempotencyKey", str(uuid.uuid4()))
        return self._repeat("POST", "/v1/tasks", body)

    def submit_batch(self, tasks: Sequence[Mapping[str, Any]], **fields: Any) -> Json:
        """Submits up to 100 tasks, each with the fields of the HTTP API."""
        return self._once("POST", "/v1/tasks/batch", {"tasks": list(tasks), **fields})

    def get(self, task_id: str) -> Json:
        return self._repeat("GET", _task(task_id))

    def wait(self, task_id: str, *, timeout: Optional[float] = None) -> Json:
        """Returns the task once it has ended, however it ended. Raises TimeoutError after ``timeout`` seconds.

        A server that restarts meanwhile is waited for.
        """
        until = None if timeout is None else time.monotonic() + timeout
        failures = 0
        while True:
            left = _HOLD_SECONDS if until is None else min(until - time.monotonic(), _HOLD_SECONDS)
            if left <= 0:
                raise TimeoutError(f"task {task_id} has not ended within {timeout} seconds")
            began = time.monotonic()
            try:
                hold = max(int(left), 1)
                path = _task(task_id)
                task: Json = self._connection.ask("GET", path, query={"wait": hold}, timeout=hold + self._timeout)
                failures = 0
            except (RotaError, ConnectionFailed) as error:
                if not _is_passing(error):
                    raise
                failures += 1
                time.sleep(_pause(failures, error))
                continue
            if task["state"] in _ENDED:
                return task
            # A server that does not hold its answers must not be polled without a pause.
            if time.monotonic() - began < 0.5:
                time.sleep(0.5)

    def list(self, **filters: Any) -> Json:
        """A page of tasks: ``{tasks, count, nextCursor}``. Filters have the names of the HTTP API: ``state="failed"``."""
        return self._repeat("GET", "/v1/tasks", query=filters)

    def cancel(self, task_id: str, *, tree: bool = False) -> Json:
        """Cancels a task; with ``tree`` also all that were submitted within it."""
        return self._once("POST", f"{_task(task_id)}/cancel{'?tree=true' if tree else ''}")

    def retry(self, task_id: str) -> Json:
        return self._once("POST", f"{_task(task_id)}/retry")

    def explain(self, task_id: str) -> Json:
        """Why the task is not running yet."""
        return self._repeat("GET", f"{_task(task_id)}/explain")

    def logs(self, task_id: str, **filters: Any) -> Json:
        """The lines that its handler logged."""
        return self._repeat("GET", f"{_task(task_id)}/logs", query=filters)

    # --------------------------------------------------------------------------------------------------- sessions

    def say(
        self,
        session: str,
        message: str,
        *,
        agent: Optional[str] = None,
        wait: Union[bool, float] = False,
        **fields: Any,
    ) -> Json:
        """Sends a message to a session. With ``wait`` returns the whole task once it has ended, else its ``taskId``."""
        body = {"message": message, **({} if agent is None else {"agentId": agent}), **fields}
        sent: Json = self._once("POST", f"{_session(session)}/messages", body)
        if wait is False or "taskId" not in sent:
            return sent
        return self.wait(sent["taskId"], timeout=None if wait is True else float(wait))

    def stop(self, session: str) -> Json:
        """Stops the running task of a session."""
        return self._once("POST", f"{_session(session)}/stop")

    def stop_all(self, session: str) -> Json:
        """Stops the running tasks of a session, and cancels those that wait."""
        return self._once("POST", f"{_session(session)}/stopall")

    # -------------------------------------------------------------------------------------------------- schedules

    def schedule(
        self,
        when: Union[str, Mapping[str, Any]],
        *,
        message: Optional[str] = None,
        agent: Optional[str] = None,
        **fields: Any,
    ) -> Json:
        """Creates a schedule: ``client.schedule("every weekday at 9:00", message="…", agent="research")``.

        ``when`` is a phrase, or ``{"kind": "cron", "expr": "0 9 * * *"}``. Further fields have the names of the HTTP API.
        """
        named = {"schedule": when, "message": message, "agent": agent}
        body = {**{name: value for name, value in named.items() if value is not None}, **fields}
        created: Json = self._once("POST", "/v1/schedules", body)
        task: Json = created["scheduled_task"]
        return task

    def schedules(self, **filters: Any) -> List[Json]:
        page = self._repeat("GET", "/v1/schedules", query=filters)
        found: List[Json] = page["schedules"]
        return found

    def update_schedule(self, schedule_id: int, **fields: Any) -> Json:
        changed: Json = self._once("PATCH", f"/v1/schedules/{segment(schedule_id)}", fields)
        task: Json = changed["scheduled_task"]
        return task

    def delete_schedule(self, schedule_id: int) -> Json:
        return self._once("DELETE", f"/v1/schedules/{segment(schedule_id)}")

    def run_schedule(self, schedule_id: int, *, mode: str = "force") -> Json:
        return self._once("POST", f"/v1/schedules/{segment(schedule_id)}/run", {"mode": mode})

    def runs(self, schedule_id: int) -> List[Json]:
        """The runs of a schedule, newest first."""
        page = self._repeat("GET", f"/v1/schedules/{segment(schedule_id)}/runs")
        found: List[Json] = page["runs"]
        return found

    # ---------------------------------------------------------------------------------------------------- anything

    def request(
        self, method: str, path: str, body: Any = None, *, query: Optional[Mapping[str, Any]] = None
    ) -> Any:
        """Any other route of the HTTP API, in one try: ``client.request("GET", "/v1/agents")``."""
        return self._connection.ask(method, path, body, query=query)

    def _once(self, method: str, path: str, body: Any = None) -> Json:
        answer: Json = self._connection.ask(method, path, body)
        return answer

    def _repeat(
        self, method: str, path: str, body: Any = None, *, query: Optional[Mapping[str, Any]] = None
    ) -> Json:
        """For requests that do no more when they are sent twice."""
        for failures in range(1, self._retries + 1):
            try:
                answer: Json = self._connection.ask(method, path, body, query=query)
                return answer
            except (RotaError, ConnectionFailed) as error:
                if not _is_passing(error):
                    raise
                time.sleep(_pause(failures, error))
        last: Json = self._connection.ask(method, path, body, query=query)
        return last


def _is_passing(error: Union[RotaError, ConnectionFailed]) -> bool:
    if isinstance(error, ConnectionFailed):
        return error.status is None or error.status in (502, 503, 504)
    # A full queue is no temporary failure: each try leaves a rejected task.
    return error.code != "queue_full" and (error.retryable or error.status == 429)


def _pause(failures: int, error: Union[RotaError, ConnectionFailed]) -> float:
    asked = error.retry_after if isinstance(error, RotaError) else None
    own = min(0.2 * 2 ** min(failures - 1, 10), 5.0) * (0.5 + random.random() / 2)
    return own if asked is None else max(own, asked * (1 + random.random() / 4))


def _task(task_id: str) -> str:
    return f"/v1/tasks/{segment(task_id)}"


def _session(key: str) -> str:
    return f"/v1/sessions/{segment(key)}"
