"""The errors of the package."""

from __future__ import annotations

from typing import Any, Dict, Optional


class RotaError(Exception):
    """Rota refused a request. ``code`` is one of docs/errors.md; the message says what to do."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int,
        retryable: bool = False,
        details: Optional[Dict[str, Any]] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.retryable = retryable
        self.details: Dict[str, Any] = details or {}
        #: How many seconds the server asks to wait; None: it does not say.
        self.retry_after = retry_after


class ConnectionFailed(Exception):
    """There was no answer of Rota: nothing listens there, the connection broke, or something else answered."""

    def __init__(self, message: str, *, may_have_happened: bool = True, status: Optional[int] = None) -> None:
        super().__init__(message)
        #: Whether the server may have carried the request out.
        self.may_have_happened = may_have_happened
        #: The status of an answer that was not Rota's; None: there was none.
        self.status = status


class PermanentError(Exception):
    """Raised by a handler if a retry would fail again: the task fails at once, even if it has retries left."""


class RetryLater(Exception):
    """Raised by a handler to fail the attempt and to ask for a pause before the next one."""

    def __init__(self, message: str, *, after: float) -> None:
        super().__init__(message)
        #: Seconds.
        self.after = after


class Cancelled(Exception):
    """Raised in a handler by ``context.check()`` and ``context.sleep()`` when Rota has ended the attempt."""
