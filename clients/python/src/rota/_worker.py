"""The worker: asks a Rota server for tasks, calls handlers, and reports how they ended."""

from __future__ import annotations

import asyncio
import datetime
import inspect
import json
import logging
import platform
import queue
import random
import signal
import socket
import threading
import time
import uuid
from collections import OrderedDict, deque
from concurrent.futures import Future
from typing import Any, Awaitable, Callable, Deque, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._client import Client
from ._errors import Cancelled, ConnectionFailed, PermanentError, RetryLater, RotaError
from ._http import Abort, Connection, segment

Json = Dict[str, Any]
Handler = Callable[[Json, "Context"], Union[Any, Awaitable[Any]]]

_log = logging.getLogger("rota.worker")

#: How long a claim takes at most, and of that its answer once the server no longer holds it, as shares of the lease. If the answer
#: gets lost on a connection that stays open, the claim is repeated while the server still keeps its attempts for this worker.
_CLAIM_SHARE = 0.9
_CLAIM_ANSWER_SHARE = 0.15
_CLAIM_ANSWER_MAX = 5.0
#: A server that answers an empty claim at once, without ``retryInMs``, is not asked again before this.
_EMPTY_CLAIM = 1.0
#: Progress, log lines and new attempts are reported at most this often, and sooner than the interval of heartbeats.
_NEWS = 1.0
#: Progress and log lines of one heartbeat, in bytes. The server accepts 64 KiB.
_NEWS_BYTES = 60_000
#: How many heartbeats one attempt may need for its last log lines: 256 KiB are stored with a task.
_FLUSHES_MAX = 6
_PROGRESS_BYTES = 16_384
_LINES_MAX = 1_000
_LINE_LENGTH = 4_000
#: How many outcomes one request carries, and about how many bytes. A body may have 1 MiB.
_GROUP_OUTCOMES = 100
_GROUP_BYTES = 262_144
#: The largest body that a server accepts. A larger one is not sent: the server closes the connection while the worker still
#: writes, so that the worker may never read the refusal and would send it again for ever.
_BODY_BYTES = 1_048_576
_TOO_LARGE = f"it is larger than {_BODY_BYTES} bytes with what belongs to it: store large data elsewhere, and return where"
#: How long a stop waits for the server to record the last outcomes.
_LAST_FINISH = 10.0
_ENDED_MAX = 1_000
#: A stream of signals that is silent for longer is dead: the server writes something every 15 seconds.
_SILENCE_MAX = 40.0
_RECONNECT_MAX = 30.0
_ERROR_LENGTH = 4_000

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


class Worker:
    """Runs tasks of a Rota server in this process.

        worker = rota.Worker(slots=4)

        @worker.agent("shout")
        def shout(task, context):
            return task["message"].upper()

        worker.run()

    A handler is a function of the task and its context; what it returns, as JSON, is the result. If it raises, the attempt
    fails and is retried while retries are left. Functions run in threads, ``async`` functions on one event loop. ``url`` and
    ``key`` default to the variables ``ROTA_URL`` and ``ROTA_KEY``.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        key: Optional[str] = None,
        *,
        agents: Optional[Mapping[str, Handler]] = None,
        slots: int = 1,
        name: Optional[str] = None,
        instance_id: Optional[str] = None,
        labels: Optional[Mapping[str, str]] = None,
        version: Optional[str] = None,
        lease_ms: Optional[int] = None,
        heartbeat_ms: Optional[int] = None,
        grace: float = 30.0,
    ) -> None:
        if not 1 <= slots <= 1000:
            raise ValueError(f"slots must be a number from 1 to 1000, not {slots!r}")
        self._connection = Connection(url, key)
        self._handlers: Dict[str, Handler] = dict(agents or {})
        self._slots = slots
        self._grace = grace
        self._described: Json = {
            "name": name or socket.gethostname(),
            "instanceId": instance_id or str(uuid.uuid4()),
            "slots": slots,
            "runtime": f"python {platform.python_version()}",
        }
        optional = {"labels": labels, "version": version, "leaseMs": lease_ms, "heartbeatMs": heartbeat_ms}
        self._described.update({field: value for field, value in optional.items() if value is not None})

        self._registration: Optional[Json] = None
        self._register_lock = threading.Lock()
        #: Guards what follows, and is notified of every change.
        self._changed = threading.Condition()
        self._held: Dict[str, Context] = {}
        self._finishing: Dict[str, bool] = {}
        self._returned: Dict[str, bool] = {}
        self._ended: "OrderedDict[str, bool]" = OrderedDict()
        self._stopping = False
        self._give_up = False
        self._failure: Optional[BaseException] = None
        self._claim_abort = Abort()
        self._signals_abort = Abort()
        self._outcomes: "queue.Queue[Optional[Json]]" = queue.Queue()
        #: Outcomes that the next claim carries, or the one that is under way; whether a claim waits for a free slot.
        self._carried: Optional[List[Json]] = None
        self._claim_waits = False
        self._sent_at: Optional[float] = None
        self._beat_lock = threading.Lock()
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._done = threading.Event()
        self._stop_lock = threading.Lock()
        self._stop_began = False

    def agent(self, name: str) -> Callable[[Handler], Handler]:
        """Names the handler of an agent. ``*`` is for all agents that need a worker; its key must be an operator's."""

        def add(handler: Handler) -> Handler:
            self._handlers[name] = handler
            return handler

        return add

    @property
    def worker_id(self) -> Optional[str]:
        """The id that the server gave this worker; None before the first registration."""
        if self._registration is None:
            return None
        worker_id: str = self._registration["workerId"]
        return worker_id

    @property
    def running(self) -> int:
        """The number of tasks that it runs."""
        return len(self._held)

    def run(self) -> None:
        """Runs until SIGTERM, Ctrl-C, ``stop()`` or an operator ends it. Raises if the server refuses this worker.

        If the program has not configured ``logging``, the log of the worker goes to standard error.
        """
        _show_log()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._on_signal)
        self.start()
        self._done.wait()
        if self._failure is not None:
            raise self._failure

    def start(self) -> None:
        """Registers, and begins to ask for tasks in threads of its own. While the server is away, it waits."""
        if not self._handlers:
            raise ValueError("the worker has no agents: name a handler with @worker.agent(…)")
        failures = 0
        while not self._stopping:
            try:
                self._register()
                break
            except (RotaError, ConnectionFailed) as error:
                if not _is_passing(error):
                    raise
                failures += 1
                _log.warning("cannot register, trying again: %s", error)
                self._pause(_backoff(failures, error))
        if self._stopping:
            return
        _log.info("worker %s waits for tasks of %s", self.worker_id, ", ".join(self._handlers))
        self._connection.close()
        for target in (self._claim_forever, self._beat_forever, self._finish_forever, self._listen_forever):
            threading.Thread(target=self._and_close, args=(target,), name=f"rota{target.__name__}", daemon=True).start()

    def stop(self, *, grace: Optional[float] = None) -> None:
        """Asks for no more tasks, waits until the running handlers have ended, and unregisters.

        After ``grace`` seconds the handlers are cancelled, and their tasks go back to the queue.
        """
        with self._stop_lock:
            first, self._stop_began = not self._stop_began, True
        if not first:
            self._done.wait()
            return
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._claim_abort.abort()
        with self._changed:
            self._changed.wait_for(lambda: not self._held, self._grace if grace is None else grace)
            left = [context for context in self._held.values() if not context._over]
            for context in left:
                self._finish(context, {"outcome": "released"})
        for context in left:
            context._cancel("released")
        with self._changed:
            self._changed.wait_for(lambda: not self._finishing, _LAST_FINISH)
            self._give_up = True
            self._changed.notify_all()
        self._outcomes.put(None)
        self._signals_abort.abort()
        if self._registration is not None:
            try:
                self._call("DELETE", "", None)
            except (RotaError, ConnectionFailed) as error:
                _log.warning("could not unregister; the lease of the worker runs out: %s", error)
            self._connection.close()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
        _log.info("stopped")
        self._done.set()

    def _and_close(self, target: Callable[..., None], *arguments: Any) -> None:
        """Runs in a thread of its own, which has a connection of its own."""
        try:
            target(*arguments)
        except BaseException as error:
            # Without one of its threads a worker would hold its tasks for ever.
            _log.exception("a thread of the worker failed; the worker stops")
            self._failure = error
            self._stop_in_thread()
        finally:
            self._connection.close()

    def _on_signal(self, number: int, _frame: Any) -> None:
        # In a thread: a signal handler may interrupt code that holds the locks that a stop needs.
        if self._stopping:
            raise SystemExit(128 + number)
        self._stop_in_thread()

    def _stop_in_thread(self) -> None:
        threading.Thread(target=self.stop, name="rota_stop").start()

    # ------------------------------------------------------------------------------------------------------ requests

    def _register(self) -> Json:
        with self._register_lock:
            if self._registration is not None:
                return self._registration
            body = {**self._described, "agents": list(self._handlers)}
            registration: Json = self._connection.ask("POST", "/v1/workers", body)
            self._registration = registration
            return registration

    def _call(self, method: str, call: str, body: Any, **options: Any) -> Any:
        """One try of a call of this worker. Registers again after the server has forgotten it."""
        registration = self._register()
        path = f"/v1/workers/{segment(registration['workerId'])}{call}"
        try:
            return self._connection.ask(method, path, body, **options)
        except RotaError as error:
            if error.code == "unknown_worker" and self._registration is registration:
                self._registration = None
            raise

    def _pause(self, seconds: float) -> None:
        """Ends early when the worker stops."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, seconds)

    # ------------------------------------------------------------------------------------------------------- claims

    def _claim_forever(self) -> None:
        try:
            try:
                self._claim_until_stopped()
            finally:
                # The thread that sends outcomes waits for it, and `stop` waits for that thread.
                self._answer_carried(None)
        except BaseException as error:
            if self._stopping:
                return
            _log.error("the server refuses this worker; it stops: %s", error)
            self._failure = error
            self.stop()

    def _claim_until_stopped(self) -> None:
        claim_id = str(uuid.uuid4())
        failures = 0
        while True:
            carried = self._until_free()
            if self._stopping:
                return
            began = time.monotonic()
            try:
                answer = self._claim(claim_id, carried)
            except (RotaError, ConnectionFailed) as error:
                self._answer_carried(None)
                # What the server refuses may be one of the outcomes, which are now sent by themselves.
                if not _is_passing(error) and not carried:
                    raise
                failures += 1
                if not self._stopping:
                    _log.warning("a claim failed, repeating it: %s", error)
                # With the same id: the server may have assigned attempts in a response that was lost.
                self._pause(_backoff(failures, error))
                continue
            failures = 0
            claim_id = str(uuid.uuid4())
            self._answer_carried(answer.get("finished"))
            attempts: Sequence[Json] = answer.get("attempts", ())
            for claimed in attempts:
                self._begin(claimed)
            retry_in_ms = answer.get("retryInMs")
            if answer.get("drain") and retry_in_ms is None:
                return self.stop()
            # With `retryInMs` it is the server that drains: another one takes over.
            if retry_in_ms is not None:
                self._pause(_jittered(retry_in_ms / 1000))
            # A claim that carries outcomes does not wait for tasks: the next one does.
            elif not attempts and not carried and time.monotonic() - began < _EMPTY_CLAIM:
                self._pause(_jittered(_EMPTY_CLAIM))

    def _until_free(self) -> List[Json]:
        """Returns when a slot is free, or is about to with the outcomes that it returns."""
        with self._changed:
            self._claim_waits = True
            self._changed.wait_for(
                lambda: self._stopping or self._carried is not None or len(self._held) < self._slots
            )
            self._claim_waits = False
            return self._carried or []

    def _carry(self, group: List[Json], size: int) -> bool:
        """While all slots are taken, the next claim carries outcomes: one request ends tasks and gets the next ones.

        Waits for its answer. False: no claim has carried them to the server.
        """
        with self._changed:
            is_full = self._claim_waits and not self._stopping and len(self._held) >= self._slots
            if not is_full or size > _GROUP_BYTES or len(group) > (self._registration or {}).get("finishesPerClaim", 0):
                return False
            # Of a handler that ignores its cancel the outcome is known, but the slot stays taken.
            if not all(outcome["attemptToken"] in self._returned for outcome in group):
                return False
            self._carried = group
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._carried is not group)
            return all(outcome["attemptToken"] not in self._finishing for outcome in group)

    def _answer_carried(self, answers: Optional[Sequence[Json]]) -> None:
        """None: the claim failed, and the outcomes are sent without it."""
        group = self._carried
        if group is None:
            return
        if answers is not None:
            self._answered(group, answers)
        with self._changed:
            self._carried = None
            self._changed.notify_all()

    def _claim(self, claim_id: str, carried: Sequence[Json]) -> Json:
        registration = self._register()
        lease = registration.get("leaseMs", 0) / 1000
        answer_time = min(lease * _CLAIM_ANSWER_SHARE, _CLAIM_ANSWER_MAX)
        wait = min(int(registration.get("maxWaitS", 0)), max(int(lease * _CLAIM_SHARE - answer_time), 1))
        with self._changed:
            free = self._slots - len(self._held) + len(carried)
        body: Json = {"claimId": claim_id, "max": free, "waitS": wait}
        if carried:
            body.update(waitS=0, finishes=carried)
        answer: Json = self._call("POST", "/claim", body, timeout=wait + answer_time, abort=self._claim_abort)
        return answer

    def _begin(self, claimed: Json) -> None:
        token = claimed["attemptToken"]
        with self._changed:
            # The answer to a repeated claim names attempts that are already running.
            if token in self._held or token in self._ended:
                return
            context = Context(claimed, self._notify, self._session_of, self._connection.url)
            self._held[token] = context
            self._changed.notify_all()
        # The server ends it, too: this is for the time in which the server cannot be reached.
        limits = [
            (claimed.get("timeoutMs"), f"timed out after {claimed.get('timeoutMs')} ms", True),
            (claimed.get("deadlineInMs"), "deadline exceeded", False),
        ]
        timers = [
            threading.Timer(ms / 1000, self._expire, (context, error, retryable))
            for ms, error, retryable in limits
            if ms is not None
        ]
        for timer in timers:
            timer.daemon = True
            timer.start()
        threading.Thread(
            target=self._and_close, args=(self._execute, context, timers), name="rota_handler", daemon=True
        ).start()

    # ------------------------------------------------------------------------------------------------------ handlers

    def _execute(self, context: Context, timers: Sequence[threading.Timer]) -> None:
        outcome = self._outcome(context)
        for timer in timers:
            timer.cancel()
        self._flush(context)
        with self._changed:
            if not context._over:
                self._finish(context, outcome)
            self._returned[context.token] = True
            if context.token not in self._finishing:
                self._free(context.token)

    def _outcome(self, context: Context) -> Json:
        try:
            handler = self._handlers.get(context.task["agentId"]) or self._handlers.get("*")
            if handler is None:
                return {"outcome": "released"}
            task = self._with_dependencies(context)
            result = self._call_handler(handler, task, context)
            # Checked here, so that a wrong result fails its own attempt only.
            json.dumps(result, allow_nan=False)
            return {"outcome": "done", "result": result}
        except PermanentError as error:
            return {"outcome": "failed", "error": _error_text(error), "retryable": False}
        except RetryLater as error:
            after = max(int(error.after * 1000), 0)
            return {"outcome": "failed", "error": _error_text(error), "retryable": True, "retryAfterMs": after}
        except BaseException as error:
            if not isinstance(error, Cancelled):
                _log.warning("a handler failed for task %s", context.task.get("taskId"), exc_info=True)
            return {"outcome": "failed", "error": _error_text(error), "retryable": True}

    def _call_handler(self, handler: Handler, task: Json, context: Context) -> Any:
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
        with self._changed:
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

    def _session_of(self, context: Context, turns: int) -> Optional[Json]:
        path = f"/v1/attempts/{segment(context.token)}/session"
        session: Optional[Json] = self._read(context, path, query={"turns": turns})["session"]
        return session

    def _read(self, context: Context, path: str, **options: Any) -> Json:
        """Reads something for a handler, repeatedly while the server is away or asks to wait."""
        failures = 0
        while True:
            try:
                answer: Json = self._connection.ask("GET", path, **options)
                return answer
            except (RotaError, ConnectionFailed) as error:
                if not _is_passing(error):
                    raise
                failures += 1
                _log.warning("a read for a handler failed, repeating it: %s", error)
                context.sleep(_backoff(failures, error))

    def _expire(self, context: Context, error: str, retryable: bool) -> None:
        with self._changed:
            if context._over:
                return
            self._finish(context, {"outcome": "failed", "error": error, "retryable": retryable})
        context._cancel(error)

    def _finish(self, context: Context, outcome: Json) -> None:
        """Called with the lock held."""
        context._end("the attempt is over: it gets no more messages")
        self._finishing[context.token] = True
        used = {} if context._used is None else {"usage": context._used}
        self._outcomes.put({"attemptToken": context.token, **outcome, **used})

    def _free(self, token: str) -> None:
        """The handler has returned and the outcome is answered. Called with the lock held."""
        self._returned.pop(token, None)
        self._held.pop(token, None)
        self._ended[token] = True
        if len(self._ended) > _ENDED_MAX:
            self._ended.popitem(last=False)
        self._changed.notify_all()

    # ---------------------------------------------------------------------------------------------------- heartbeats

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _beating(self) -> List[Context]:
        return [context for token, context in self._held.items() if not context._over or token in self._finishing]

    def _beat_forever(self) -> None:
        failures = 0
        while not self._give_up:
            with self._changed:
                if not self._beating():
                    self._sent_at = None
                    self._changed.wait_for(lambda: self._give_up or bool(self._beating()))
                    continue
                left = self._seconds_to_beat()
                if left > 0:
                    self._changed.wait(left)
                    continue
            try:
                self._beat()
                failures = 0
            except (RotaError, ConnectionFailed) as error:
                failures += 1
                _log.warning("a heartbeat failed: %s", error)
                time.sleep(min(_backoff(failures, error), 2.0))

    def _seconds_to_beat(self) -> float:
        """Called with the lock held."""
        interval = (self._registration or {}).get("heartbeatMs", 5_000) / 1000
        if any(context._has_news for context in self._beating()):
            interval = min(interval, _NEWS)
        now = time.monotonic()
        if self._sent_at is None:
            self._sent_at = now
        return self._sent_at + interval - now

    def _flush(self, context: Context) -> None:
        """Sends the log lines that an attempt still has, since its end cannot carry them."""
        try:
            for _ in range(_FLUSHES_MAX):
                if context._over or not context._has_lines:
                    return
                self._beat(context)
        except (RotaError, ConnectionFailed) as error:
            _log.warning("log lines of an attempt are lost: %s", error)

    def _beat(self, first: Optional[Context] = None) -> None:
        """What does not fit into one heartbeat waits, of ``first`` last."""
        with self._beat_lock:
            with self._changed:
                held = {context.token: context for context in ([first] if first else []) + self._beating()}
                self._sent_at = time.monotonic()
            if not held:
                return
            left = _NEWS_BYTES
            wires = []
            for context in held.values():
                wire, size = context._heartbeat(left)
                left -= size
                wires.append(wire)
            timeout = max((self._registration or {}).get("leaseMs", 15_000) / 3000, 1.0)
            try:
                answer = self._call("POST", "/heartbeat", {"attempts": wires}, timeout=timeout)
            except (RotaError, ConnectionFailed) as error:
                # The attempts must be named in any case, so what the server refuses is not sent again.
                if not _is_passing(error):
                    self._sent(wires, held)
                raise
            self._sent(wires, held)
        asked = {wire["attemptToken"] for wire in wires if "messagesAfter" in wire}
        for answered in answer.get("attempts", ()):
            named = held.get(answered.get("attemptToken"))
            if named is None:
                continue
            if answered.get("ok") and named.token in asked:
                named._took(answered.get("messages", ()))
            if not answered.get("ok") or answered.get("cancel"):
                self._cancelled_by_server(named, answered.get("cancel") or "unknown")
        if answer.get("drain") and not self._stopping:
            self._stop_in_thread()

    @staticmethod
    def _sent(wires: Sequence[Json], held: Mapping[str, Context]) -> None:
        for wire in wires:
            held[wire["attemptToken"]]._sent(wire)

    def _cancelled_by_server(self, context: Context, reason: str) -> None:
        with self._changed:
            if context._over:
                return
            # The server has ended the attempt: its outcome is not sent.
            context._end(reason)
        context._cancel(reason)

    # ------------------------------------------------------------------------------------------------------- signals

    def _listen_forever(self) -> None:
        """Learns at once what the next heartbeat would say. A server without such streams is asked once."""
        failures = 0
        while not self._give_up:
            try:
                for kind, signal_data in self._signals():
                    failures = 0
                    self._take_signal(kind, signal_data)
            except (RotaError, ConnectionFailed, ValueError) as error:
                if isinstance(error, RotaError) and not _is_passing(error):
                    return
                _log.debug("the stream of signals is lost: %s", error)
            failures += 1
            with self._changed:
                self._changed.wait_for(lambda: self._give_up, min(0.2 * 2 ** min(failures, 8), _RECONNECT_MAX))

    def _signals(self) -> Iterator[Tuple[str, Any]]:
        path = f"/v1/workers/{segment(self._register()['workerId'])}/signals"
        return self._connection.stream(path, silence=_SILENCE_MAX, abort=self._signals_abort)

    def _take_signal(self, kind: str, data: Json) -> None:
        if kind == "drain" and not self._stopping:
            self._stop_in_thread()
        if kind != "cancel":
            return
        with self._changed:
            ended = [
                context
                for context in self._held.values()
                if context.task.get("taskId") == data.get("taskId") and context.attempt == data.get("number")
            ]
        for context in ended:
            self._cancelled_by_server(context, data.get("cancel") or "unknown")

    # ------------------------------------------------------------------------------------------------------ outcomes

    def _finish_forever(self) -> None:
        while True:
            first = self._outcomes.get()
            if first is None:
                return
            group = [first]
            size = _size(first)
            while len(group) < _GROUP_OUTCOMES and size < _GROUP_BYTES:
                try:
                    following = self._outcomes.get_nowait()
                except queue.Empty:
                    break
                if following is None:
                    self._outcomes.put(None)
                    break
                group.append(following)
                size += _size(following)
            if not self._carry(group, size):
                self._send_outcomes(group)

    def _send_outcomes(self, group: List[Json]) -> None:
        if _size({"attempts": group}) > _BODY_BYTES:
            return self._refused(group, _TOO_LARGE)
        failures = 0
        while not self._give_up:
            try:
                answer = self._call("POST", "/finish", {"attempts": group})
            except (RotaError, ConnectionFailed) as error:
                if not _is_passing(error):
                    return self._refused(group, str(error))
                failures += 1
                _log.warning("a finish failed, sending it again: %s", error)
                time.sleep(_backoff(failures, error))
                continue
            return self._answered(group, answer.get("attempts", ()))

    def _answered(self, group: Sequence[Json], answers: Sequence[Json] = ()) -> None:
        for answered in answers:
            if not answered.get("recorded"):
                _log.warning("the outcome of an attempt came too late: %s", answered.get("reason"))
        with self._changed:
            for outcome in group:
                token = outcome["attemptToken"]
                self._finishing.pop(token, None)
                if token in self._returned:
                    self._free(token)
            self._changed.notify_all()

    def _refused(self, group: List[Json], why: str) -> None:
        """The server will never accept this request: outcomes are sent one by one, and the wrong one as an error."""
        if len(group) > 1:
            for each in group:
                self._send_outcomes([each])
            return
        outcome = group[0]
        if "result" not in outcome:
            _log.error("Rota refuses the outcome of an attempt; its lease will run out: %s", why)
            return self._answered(group)
        text = f"the result was refused: {why}"
        failed = {"attemptToken": outcome["attemptToken"], "outcome": "failed", "error": text, "retryable": False}
        self._send_outcomes([{**failed, **({"usage": outcome["usage"]} if "usage" in outcome else {})}])


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


def _show_log() -> None:
    """Without this, Python shows only warnings of a program that has not configured logging: a worker would start in silence."""
    if _log.hasHandlers() or _log.level != logging.NOTSET:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)


def _is_passing(error: Union[RotaError, ConnectionFailed]) -> bool:
    """All requests of a worker are idempotent, so every failure of the server is a reason to repeat them."""
    if isinstance(error, RotaError) and error.code == "unknown_worker":
        return True
    return error.status is None or error.status in (408, 429) or error.status >= 500


def _backoff(failures: int, error: Union[RotaError, ConnectionFailed]) -> float:
    own = min(0.2 * 2 ** min(failures - 1, 10), 5.0) * (0.5 + random.random() / 2)
    asked = error.retry_after if isinstance(error, RotaError) else None
    return own if asked is None else max(own, _jittered(asked))


def _jittered(seconds: float) -> float:
    """Longer by up to a quarter, so that workers do not all come back at once."""
    return seconds * (1 + random.random() / 4)


def _error_text(error: BaseException) -> str:
    return (str(error) or type(error).__name__)[:_ERROR_LENGTH]


def _size(outcome: Json) -> int:
    return len(json.dumps(outcome))


def _first(*values: Optional[int]) -> Optional[int]:
    return next((value for value in values if value is not None), None)
