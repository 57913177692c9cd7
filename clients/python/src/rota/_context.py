"""What a handler knows of its attempt, and how it reports."""

from __future__ import annotations

import datetime
import json
import logging
import threading
from collections import deque
from concurrent.futures import Future
from typing import Any, Callable, Deque, List, Mapping, Optional, Sequence, Union

from ._client import Client, Json
from ._errors import Cancelled

_log = logging.getLogger("rota.worker")

_PROGRESS_BYTES = 16_384
_LINES_MAX = 1_000
_LINE_LENGTH = 4_000

_COUNTS = ("input_tokens", "output_tokens", "context_tokens", "context_window")


class Context:
    """What a handler knows of its attempt, and how it reports."""

    def __init__(
        self,
        claimed: Json,
        on_news: Callable[[], None],
        read_session: "Optional[Callable[[Context, int], Optional[Json]]]" = None,
        url: Optional[str] = None,
    ) -> None:
        self.token: str = claimed["attemptToken"]
        #: Stands for this agent within this task in requests to Rota, until the attempt has ended. Keep it secret.
        self.task_token: str = claimed.get("taskToken", "")
        self._url = url
        self.task: Json = claimed["task"]
        #: The number of the attempt, from 1.
        self.attempt: int = claimed.get("number", 1)
        self.tenant_id: str = claimed.get("tenantId", "default")
        self.reason: Optional[str] = None
        self._cancelled = threading.Event()
        self._on_cancel: List[Callable[[], None]] = []
        self._on_news = on_news
        self._read_session = read_session
        self._lock = threading.Lock()
        self._over = False
        self._named = False
        self._progress: Optional[List[Any]] = None
        self._lines: Deque[Json] = deque(maxlen=_LINES_MAX)
        self._used: Optional[Json] = None
        self._used_is_new = False
        self._asked: "Optional[Future[List[Json]]]" = None
        self._seen_position = 0

    @property
    def cancelled(self) -> bool:
        """Whether Rota has ended the attempt: cancelled, timed out, pre-empted … ``reason`` says which."""
        return self._cancelled.is_set()

    def check(self) -> None:
        """Raises Cancelled if Rota has ended the attempt."""
        if self.cancelled:
            raise Cancelled(self.reason or "cancelled")

    def sleep(self, seconds: float) -> None:
        """Sleeps, and raises Cancelled as soon as Rota ends the attempt."""
        self._cancelled.wait(seconds)
        self.check()

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Calls this from another thread when Rota ends the attempt, as to close a connection that the handler waits for."""
        with self._lock:
            if not self.cancelled:
                self._on_cancel.append(callback)
                return
        callback()

    def progress(self, data: Any) -> None:
        """Reports progress: any JSON up to 16 KiB. If reports come faster than they are sent, only the latest is kept."""
        text = json.dumps(data, allow_nan=False)
        if len(text.encode()) > _PROGRESS_BYTES:
            raise ValueError(f"progress is larger than {_PROGRESS_BYTES} bytes of JSON")
        with self._lock:
            self._progress = [json.loads(text)]
        self._on_news()

    def log(self, text: str, level: str = "info") -> None:
        """Stores a log line with the task. Levels: debug, info, warn, error."""
        now = datetime.datetime.now(datetime.timezone.utc)
        at = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with self._lock:
            self._lines.append({"at": at, "level": level, "text": str(text)[:_LINE_LENGTH]})
        self._on_news()

    def session(self, *, turns: int = 0) -> Optional[Json]:
        """The session of the task: ``generation``, ``contextWindow`` and its last ``turns``, oldest first. None: it has none."""
        if self.task.get("sessionKey") is None or self._read_session is None:
            return None
        return self._read_session(self, turns)

    def usage(
        self,
        *,
        input_tokens: Optional[int] = None,
        output_tokens: Optional[int] = None,
        context_tokens: Optional[int] = None,
        context_window: Optional[int] = None,
    ) -> None:
        """Reports tokens. Several reports add up; of ``context_tokens`` and ``context_window`` the last one counts."""
        given = dict(zip(_COUNTS, (input_tokens, output_tokens, context_tokens, context_window)))
        for name, value in given.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ValueError(f"{name} must be a whole number from 0 on, not {value!r}")
        with self._lock:
            before = self._used or {}
            used: Json = {
                "inputTokens": before.get("inputTokens", 0) + (input_tokens or 0),
                "outputTokens": before.get("outputTokens", 0) + (output_tokens or 0),
            }
            of_call = None
            if input_tokens is not None or output_tokens is not None:
                of_call = (input_tokens or 0) + (output_tokens or 0)
            in_context = _first(context_tokens, of_call, before.get("contextTokens"))
            window = _first(context_window, before.get("contextWindow"))
            if in_context is not None:
                used["contextTokens"] = in_context
            if window is not None:
                used["contextWindow"] = window
            self._used = used
            self._used_is_new = True
        self._on_news()

    def messages(self) -> List[Json]:
        """Takes the messages in mode ``steer`` that were sent to the session meanwhile: ``taskId`` and ``message``, oldest first.

        Each is returned once, and ends together with the task. Waits for the next heartbeat, about a second. Raises Cancelled
        when the attempt is over.
        """
        self.check()
        if self.task.get("sessionKey") is None:
            return []
        with self._lock:
            if self._over:
                raise Cancelled("the attempt is over: it gets no more messages")
            if self._asked is None:
                self._asked = Future()
            asked = self._asked
        self._on_news()
        return asked.result()

    def submit(self, **fields: Any) -> Json:
        """Submits a task within this one, as ``Client.submit`` does; without ``agent`` for the same agent."""
        with self._client() as client:
            return client.submit(**fields)

    def schedule(self, when: Union[str, Mapping[str, Any]], **fields: Any) -> Json:
        """Creates a schedule within this task, as ``Client.schedule`` does; without ``agent`` for the same agent."""
        with self._client() as client:
            return client.schedule(when, **fields)

    def say(self, session: str, message: str, **fields: Any) -> Json:
        """Sends a message to a session within this task, as ``Client.say`` does."""
        with self._client() as client:
            return client.say(session, message, **fields)

    # The rest is for the worker.

    def _client(self) -> Client:
        self.check()
        return Client(self._url, task_token=self.task_token, via="worker")

    @property
    def _has_lines(self) -> bool:
        return len(self._lines) > 0

    @property
    def _has_news(self) -> bool:
        is_new = not self._named or self._used_is_new
        return is_new or self._has_lines or self._progress is not None or self._asked is not None

    def _heartbeat(self, bytes_max: int) -> "tuple[Json, int]":
        """What the next heartbeat says of it. What does not fit stays for the next one."""
        with self._lock:
            wire: Json = {"attemptToken": self.token}
            if self._asked is not None:
                wire["messagesAfter"] = self._seen_position
            size = 0
            if self._progress is not None:
                size += len(json.dumps(self._progress))
                if size > bytes_max:
                    return wire, 0
                wire["progress"] = self._progress[0]
            if self._used_is_new:
                wire["usage"] = self._used
            lines = []
            for line in self._lines:
                size += len(json.dumps(line)) + 1
                if size > bytes_max:
                    break
                lines.append(line)
            if lines:
                wire["log"] = lines
            return wire, size

    def _sent(self, wire: Json) -> None:
        """A heartbeat arrived. What was reported meanwhile stays for the next one."""
        with self._lock:
            self._named = True
            if self._progress is not None and "progress" in wire and self._progress[0] is wire["progress"]:
                self._progress = None
            if self._used is wire.get("usage"):
                self._used_is_new = False
            arrived = {id(line) for line in wire.get("log", ())}
            self._lines = deque((line for line in self._lines if id(line) not in arrived), maxlen=_LINES_MAX)

    def _took(self, messages: Sequence[Json]) -> None:
        """The server answered a heartbeat that asked for messages."""
        with self._lock:
            asked, self._asked = self._asked, None
            if messages:
                self._seen_position = messages[-1]["position"]
        if asked is not None:
            asked.set_result([{"taskId": each["taskId"], "message": each["message"]} for each in messages])

    def _end(self, reason: str) -> None:
        """Its outcome is decided."""
        with self._lock:
            self._over = True
            asked, self._asked = self._asked, None
        if asked is not None:
            asked.set_exception(Cancelled(reason))

    def _cancel(self, reason: str) -> None:
        with self._lock:
            if self.cancelled:
                return
            self.reason = reason
            self._cancelled.set()
            callbacks, self._on_cancel = self._on_cancel, []
        for callback in callbacks:
            try:
                callback()
            except Exception:
                _log.exception("a callback of on_cancel failed")


def _first(*values: Optional[int]) -> Optional[int]:
    return next((value for value in values if value is not None), None)
