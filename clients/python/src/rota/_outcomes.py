"""Reports how attempts ended: together where it can, and again until the server has answered."""

from __future__ import annotations

import json
import logging
import queue
import time
from typing import Any, Callable, List, Optional, Sequence

from ._client import Json
from ._errors import ConnectionFailed, RotaError
from ._retrying import backoff, is_passing

_log = logging.getLogger("rota.worker")

#: About how many bytes of outcomes one request carries, and how many of them. A body may have 1 MiB.
GROUP_BYTES = 262_144
_GROUP_OUTCOMES = 100
#: The largest body that a server accepts. A larger one is not sent: the server closes the connection while the worker still
#: writes, so that the worker may never read the refusal and would send it again for ever.
_BODY_BYTES = 1_048_576
_TOO_LARGE = f"it is larger than {_BODY_BYTES} bytes with what belongs to it: store large data elsewhere, and return where"


class Outcomes:
    """``carry`` says whether a claim has taken a group to the server, in place of a request of its own."""

    def __init__(
        self,
        *,
        call: Callable[..., Any],
        carry: Callable[[List[Json], int], bool],
        is_over: Callable[[], bool],
        on_answer: Callable[[Sequence[Json], Sequence[Json]], None],
    ) -> None:
        self._call = call
        self._carry = carry
        self._is_over = is_over
        self._on_answer = on_answer
        self._queue: "queue.Queue[Optional[Json]]" = queue.Queue()

    def put(self, outcome: Json) -> None:
        """Sends it soon."""
        self._queue.put(outcome)

    def close(self) -> None:
        """Ends ``run`` after what was put before."""
        self._queue.put(None)

    def run(self) -> None:
        """Sends them until ``close``."""
        while True:
            first = self._queue.get()
            if first is None:
                return
            group = [first]
            size = _size(first)
            while len(group) < _GROUP_OUTCOMES and size < GROUP_BYTES:
                try:
                    following = self._queue.get_nowait()
                except queue.Empty:
                    break
                if following is None:
                    self._queue.put(None)
                    break
                group.append(following)
                size += _size(following)
            if not self._carry(group, size):
                self._send(group)

    def _send(self, group: List[Json]) -> None:
        if _size({"attempts": group}) > _BODY_BYTES:
            return self._refused(group, _TOO_LARGE)
        failures = 0
        while not self._is_over():
            try:
                answer = self._call("POST", "/finish", {"attempts": group})
            except (RotaError, ConnectionFailed) as error:
                if not is_passing(error):
                    return self._refused(group, str(error))
                failures += 1
                _log.warning("a finish failed, sending it again: %s", error)
                time.sleep(backoff(failures, error))
                continue
            return self._on_answer(group, answer.get("attempts", ()))

    def _refused(self, group: List[Json], why: str) -> None:
        """The server will never accept this request: outcomes are sent one by one, and the wrong one as an error."""
        if len(group) > 1:
            for each in group:
                self._send([each])
            return
        outcome = group[0]
        if "result" not in outcome:
            _log.error("Rota refuses the outcome of an attempt; its lease will run out: %s", why)
            return self._on_answer(group, ())
        text = f"the result was refused: {why}"
        failed = {"attemptToken": outcome["attemptToken"], "outcome": "failed", "error": text, "retryable": False}
        self._send([{**failed, **({"usage": outcome["usage"]} if "usage" in outcome else {})}])


def _size(outcome: Json) -> int:
    return len(json.dumps(outcome))
