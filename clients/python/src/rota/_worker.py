"""The worker: asks a Rota server for tasks, calls handlers, and reports how they ended."""

from __future__ import annotations

import logging
import platform
import signal
import socket
import threading
import time
import uuid
from collections import OrderedDict
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ._client import Json
from ._context import Context
from ._errors import ConnectionFailed, RotaError
from ._handlers import Handler, HandlerCalls
from ._heartbeats import Heartbeats
from ._http import Abort, Connection, segment
from ._outcomes import GROUP_BYTES, Outcomes
from ._retrying import backoff, is_passing, jittered

_log = logging.getLogger("rota.worker")

#: How long a claim takes at most, and of that its answer once the server no longer holds it, as shares of the lease. If the answer
#: gets lost on a connection that stays open, the claim is repeated while the server still keeps its attempts for this worker.
_CLAIM_SHARE = 0.9
_CLAIM_ANSWER_SHARE = 0.15
_CLAIM_ANSWER_MAX = 5.0
#: A server that answers an empty claim at once, without ``retryInMs``, is not asked again before this.
_EMPTY_CLAIM = 1.0
#: How long a stop waits for the server to record the last outcomes.
_LAST_FINISH = 10.0
_ENDED_MAX = 1_000
#: A stream of signals that is silent for longer is dead: the server writes something every 15 seconds.
_SILENCE_MAX = 40.0
_RECONNECT_MAX = 30.0


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
        if not isinstance(slots, int) or not 1 <= slots <= 1000:
            raise ValueError(f"slots must be a number from 1 to 1000, not {slots!r}")
        if agents is not None and not isinstance(agents, Mapping):
            raise ValueError(f'agents must be a dict of handlers by agent, like {{"shout": shout}}, not {agents!r}')
        self._connection = Connection(url, key)
        self._handlers: Dict[str, Handler] = {}
        for agent, handler in (agents or {}).items():
            self.agent(agent)(handler)
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
        #: Outcomes that the next claim carries, or the one that is under way; whether a claim waits for a free slot.
        self._carried: Optional[List[Json]] = None
        self._claim_waits = False
        self._done = threading.Event()
        self._stop_lock = threading.Lock()
        self._stop_began = False

        def is_over() -> bool:
            return self._give_up

        self._calls = HandlerCalls(self._handlers, self._connection)
        self._outcomes = Outcomes(call=self._call, carry=self._carry, is_over=is_over, on_answer=self._answered)
        self._heartbeats = Heartbeats(
            changed=self._changed,
            beating=self._beating,
            call=self._call,
            registration=lambda: self._registration or {},
            is_over=is_over,
            on_ended=self._cancelled_by_server,
            on_drain=self._drained,
        )

    def agent(self, name: str) -> Callable[[Handler], Handler]:
        """Names the handler of an agent. ``*`` is for all agents that need a worker; its key must be an operator's."""

        if not isinstance(name, str):
            raise ValueError(f'name the agent, as in @worker.agent("shout"), not {name!r}')

        def add(handler: Handler) -> Handler:
            if not callable(handler):
                raise ValueError(f"the handler of the agent {name!r} must be a function, not {handler!r}")
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
                if not is_passing(error):
                    raise
                failures += 1
                _log.warning("cannot register, trying again: %s", error)
                self._pause(backoff(failures, error))
        if self._stopping:
            return
        _log.info("worker %s waits for tasks of %s", self.worker_id, ", ".join(self._handlers))
        self._connection.close()
        parts = {
            "claims": self._claim_forever,
            "heartbeats": self._heartbeats.run,
            "outcomes": self._outcomes.run,
            "signals": self._listen_forever,
        }
        for name, part in parts.items():
            threading.Thread(target=self._and_close, args=(part,), name=f"rota_{name}", daemon=True).start()

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
        self._outcomes.close()
        self._signals_abort.abort()
        if self._registration is not None:
            try:
                self._call("DELETE", "", None)
            except (RotaError, ConnectionFailed) as error:
                _log.warning("could not unregister; the lease of the worker runs out: %s", error)
            self._connection.close()
        self._calls.close()
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

    def _drained(self) -> None:
        if not self._stopping:
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
                if not is_passing(error) and not carried:
                    raise
                failures += 1
                if not self._stopping:
                    _log.warning("a claim failed, repeating it: %s", error)
                # With the same id: the server may have assigned attempts in a response that was lost.
                self._pause(backoff(failures, error))
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
                self._pause(jittered(retry_in_ms / 1000))
            # A claim that carries outcomes does not wait for tasks: the next one does.
            elif not attempts and not carried and time.monotonic() - began < _EMPTY_CLAIM:
                self._pause(jittered(_EMPTY_CLAIM))

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
            if not is_full or size > GROUP_BYTES or len(group) > (self._registration or {}).get("finishesPerClaim", 0):
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
            context = Context(claimed, self._notify, self._calls.session_of, self._connection.url)
            self._held[token] = context
            self._changed.notify_all()
        # The server ends it, too: this is for the time in which the server cannot be reached.
        left_ms = claimed.get("timeoutMs")
        timeout_ms = context.task.get("timeout") or left_ms
        limits = [
            (left_ms, f"timed out after {timeout_ms} ms", True),
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
        outcome = self._calls.outcome(context)
        for timer in timers:
            timer.cancel()
        self._heartbeats.flush(context)
        with self._changed:
            if not context._over:
                self._finish(context, outcome)
            self._returned[context.token] = True
            if context.token not in self._finishing:
                self._free(context.token)

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

    def _answered(self, group: Sequence[Json], answers: Sequence[Json]) -> None:
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

    def _free(self, token: str) -> None:
        """The handler has returned and the outcome is answered. Called with the lock held."""
        self._returned.pop(token, None)
        self._held.pop(token, None)
        self._ended[token] = True
        if len(self._ended) > _ENDED_MAX:
            self._ended.popitem(last=False)
        self._changed.notify_all()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _beating(self) -> List[Context]:
        return [context for token, context in self._held.items() if not context._over or token in self._finishing]

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
                if isinstance(error, RotaError) and not is_passing(error):
                    return
                _log.debug("the stream of signals is lost: %s", error)
            failures += 1
            with self._changed:
                self._changed.wait_for(lambda: self._give_up, min(0.2 * 2 ** min(failures, 8), _RECONNECT_MAX))

    def _signals(self) -> Iterator[Tuple[str, Any]]:
        path = f"/v1/workers/{segment(self._register()['workerId'])}/signals"
        return self._connection.stream(path, silence=_SILENCE_MAX, abort=self._signals_abort)

    def _take_signal(self, kind: str, data: Json) -> None:
        if kind == "drain":
            self._drained()
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

def _show_log() -> None:
    """Without this, Python shows only warnings of a program that has not configured logging: a worker would start in silence."""
    if _log.hasHandlers() or _log.level != logging.NOTSET:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
