"""Heartbeats: they say that the worker lives, carry what handlers report, and return what Rota has ended."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Callable, List, Mapping, Optional, Sequence

from ._client import Json
from ._context import Context
from ._errors import ConnectionFailed, RotaError
from ._retrying import backoff, is_passing

_log = logging.getLogger("rota.worker")

#: Progress, log lines and new attempts are reported at most this often, and sooner than the interval of heartbeats.
_NEWS = 1.0
#: Progress and log lines of one heartbeat, in bytes. The server accepts 64 KiB.
_NEWS_BYTES = 60_000
#: How many heartbeats one attempt may need for its last log lines: 256 KiB are stored with a task.
_FLUSHES_MAX = 6


class Heartbeats:
    """``changed`` guards the worker's attempts; ``beating`` returns those to name, and is called with it held."""

    def __init__(
        self,
        *,
        changed: threading.Condition,
        beating: Callable[[], List[Context]],
        call: Callable[..., Any],
        registration: Callable[[], Json],
        is_over: Callable[[], bool],
        on_ended: Callable[[Context, str], None],
        on_drain: Callable[[], None],
    ) -> None:
        self._changed = changed
        self._beating = beating
        self._call = call
        self._registration = registration
        self._is_over = is_over
        self._on_ended = on_ended
        self._on_drain = on_drain
        self._sent_at: Optional[float] = None
        self._beat_lock = threading.Lock()

    def run(self) -> None:
        """Sends them until the worker is over."""
        failures = 0
        while not self._is_over():
            with self._changed:
                if not self._beating():
                    self._sent_at = None
                    self._changed.wait_for(lambda: self._is_over() or bool(self._beating()))
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
                time.sleep(min(backoff(failures, error), 2.0))

    def _seconds_to_beat(self) -> float:
        """Called with the lock held."""
        interval = self._registration().get("heartbeatMs", 5_000) / 1000
        if any(context._has_news for context in self._beating()):
            interval = min(interval, _NEWS)
        now = time.monotonic()
        if self._sent_at is None:
            self._sent_at = now
        return self._sent_at + interval - now

    def flush(self, context: Context) -> None:
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
            timeout = max(self._registration().get("leaseMs", 15_000) / 3000, 1.0)
            try:
                answer = self._call("POST", "/heartbeat", {"attempts": wires}, timeout=timeout)
            except (RotaError, ConnectionFailed) as error:
                # The attempts must be named in any case, so what the server refuses is not sent again.
                if not is_passing(error):
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
                self._on_ended(named, answered.get("cancel") or "unknown")
        if answer.get("drain"):
            self._on_drain()

    @staticmethod
    def _sent(wires: Sequence[Json], held: Mapping[str, Context]) -> None:
        for wire in wires:
            held[wire["attemptToken"]]._sent(wire)
