"""Calls handlers, and makes of what they return or raise the outcome of an attempt."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
from concurrent.futures import Future
from typing import Any, Awaitable, Callable, Mapping, Optional, Union

from ._client import Json
from ._context import Context
from ._errors import Cancelled, ConnectionFailed, PermanentError, RetryLater, RotaError
from ._http import Connection, segment
from ._retrying import backoff, is_passing

Handler = Callable[[Json, Context], Union[Any, Awaitable[Any]]]

_log = logging.getLogger("rota.worker")

_ERROR_LENGTH = 4_000
#: The longest pause that a finish may ask for.
_RETRY_AFTER_MAX_MS = 86_400_000


class HandlerCalls:
    """Calls functions in the thread of the caller, ``async`` functions on one event loop."""

    def __init__(self, handlers: Mapping[str, Handler], connection: Connection) -> None:
        self._handlers = handlers
        self._connection = connection
        self._lock = threading.Lock()
        self._loop: Optional[asyncio.AbstractEventLoop] = None

    def close(self) -> None:
        """Ends the event loop."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)

    def outcome(self, context: Context) -> Json:
        """Calls the handler of a task, and says how the attempt ends."""
        try:
            handler = self._handlers.get(context.task["agentId"]) or self._handlers.get("*")
            if handler is None:
                return {"outcome": "released"}
            task = self._with_dependencies(context)
            result = self._call(handler, task, context)
            # Checked here, so that a wrong result fails its own attempt only.
            json.dumps(result, allow_nan=False)
            return {"outcome": "done", "result": result}
        except PermanentError as error:
            return {"outcome": "failed", "error": _error_text(error), "retryable": False}
        except RetryLater as error:
            after = _pause_ms(error.after)
            return {"outcome": "failed", "error": _error_text(error), "retryable": True, "retryAfterMs": after}
        except BaseException as error:
            if not isinstance(error, Cancelled):
                _log.warning("a handler failed for task %s", context.task.get("taskId"), exc_info=True)
            return {"outcome": "failed", "error": _error_text(error), "retryable": True}

    def session_of(self, context: Context, turns: int) -> Optional[Json]:
        """What a handler reads with ``context.session()``."""
        path = f"/v1/attempts/{segment(context.token)}/session"
        session: Optional[Json] = self._read(context, path, query={"turns": turns})["session"]
        return session

    def _call(self, handler: Handler, task: Json, context: Context) -> Any:
        returned = handler(task, context)
        if not inspect.isawaitable(returned):
            return returned
        loop = self._event_loop()
        ended: "Future[Any]" = Future()

        def begin() -> None:
            running = asyncio.ensure_future(returned)
            running.add_done_callback(lambda _: _settle(ended, running))

            def stop() -> None:
                loop.call_soon_threadsafe(running.cancel)

            context.on_cancel(stop)

        loop.call_soon_threadsafe(begin)
        # A coroutine that ignores its cancel keeps its slot until it returns, as a thread does.
        return ended.result()

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        """One loop for all async handlers, in a thread of its own."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run_loop, args=(self._loop,), name="rota_asyncio", daemon=True).start()
            return self._loop

    def _with_dependencies(self, context: Context) -> Json:
        """Fetches the results of dependencies that were too large for the claim."""
        given = context.task.get("dependencies") or []
        if not any(dependency.get("omitted") for dependency in given):
            return context.task
        return {**context.task, "dependencies": [self._dependency(context, each) for each in given]}

    def _dependency(self, context: Context, dependency: Json) -> Json:
        if not dependency.get("omitted"):
            return dependency
        task_id = dependency["taskId"]
        path = f"/v1/attempts/{segment(context.token)}/dependencies/{segment(task_id)}"
        return {"taskId": task_id, "result": self._read(context, path)["result"]}

    def _read(self, context: Context, path: str, **options: Any) -> Json:
        """Reads something for a handler, repeatedly while the server is away or asks to wait."""
        failures = 0
        while True:
            try:
                answer: Json = self._connection.ask("GET", path, **options)
                return answer
            except (RotaError, ConnectionFailed) as error:
                if not is_passing(error):
                    raise
                failures += 1
                _log.warning("a read for a handler failed, repeating it: %s", error)
                context.sleep(backoff(failures, error))


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


def _settle(ended: "Future[Any]", running: "asyncio.Future[Any]") -> None:
    """Passes on how a coroutine ended, to the thread that waits for it."""
    if running.cancelled():
        ended.set_exception(Cancelled("cancelled"))
        return
    error = running.exception()
    if error is None:
        ended.set_result(running.result())
    else:
        ended.set_exception(error)


def _pause_ms(seconds: float) -> int:
    """Any number, as the server accepts it: not a number means no pause."""
    return int(min(seconds * 1000, _RETRY_AFTER_MAX_MS)) if seconds > 0 else 0


def _error_text(error: BaseException) -> str:
    # The text of a KeyError is the key alone.
    if isinstance(error, KeyError):
        return f"{type(error).__name__}: {error}"[:_ERROR_LENGTH]
    return (str(error) or type(error).__name__)[:_ERROR_LENGTH]
