"""Requests to one Rota server: JSON over http.client, with one connection for each thread."""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
import time
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple
from urllib.parse import quote, urlencode, urlsplit

from ._errors import ConnectionFailed, RotaError

DEFAULT_URL = "http://127.0.0.1:7682"
#: Servers close connections that were idle for some seconds. A request on such a connection would fail.
_REUSE_SECONDS = 3.0
#: How much of a refusal is read, and how long a line of a stream may be.
_REFUSAL_BYTES = 65_536
_LINE_BYTES = 65_536


class Abort:
    """Ends one request from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: Optional[socket.socket] = None
        self.aborted = False

    def watch(self, used: Optional[socket.socket]) -> None:
        with self._lock:
            self._socket = used
            if self.aborted:
                self._close()

    def abort(self) -> None:
        with self._lock:
            self.aborted = True
            self._close()

    def _close(self) -> None:
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # It was closed already.


class Connection:
    """Sends requests. Safe to use from many threads."""

    def __init__(
        self,
        url: Optional[str] = None,
        key: Optional[str] = None,
        *,
        timeout: float = 30.0,
        task_token: Optional[str] = None,
        via: Optional[str] = None,
    ) -> None:
        self.url = (url or os.environ.get("ROTA_URL") or DEFAULT_URL).rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f'url must be where Rota is, like "{DEFAULT_URL}", not {self.url!r}')
        self._parts = parts
        self._headers = {"accept": "application/json", "user-agent": "rota-python"}
        # A token that is given acts for its task alone, without the key of this process.
        used_key = key or (None if task_token else os.environ.get("ROTA_KEY"))
        if used_key:
            self._headers["authorization"] = f"Bearer {used_key}"
        if task_token:
            self._headers["x-rota-task-token"] = task_token
        if via:
            self._headers["x-rota-via"] = via
        self._timeout = timeout
        self._local = threading.local()

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
        abort: Optional[Abort] = None,
        headers: Optional[Mapping[str, str]] = None,
    ) -> Any:
        """One try. Returns the JSON of the answer; raises RotaError or ConnectionFailed."""
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        sent: Dict[str, str] = dict(self._headers)
        if content is not None:
            sent["content-type"] = "application/json"
        sent.update(headers or {})
        target = self._parts.path + path + _query(query)
        connection = self._open(timeout or self._timeout)
        try:
            if abort is not None:
                abort.watch(connection.sock)
            connection.request(method, target, body=content, headers=sent)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise ConnectionFailed(f"cannot reach Rota at {self.url}: {error!r}") from error
        finally:
            if abort is not None:
                abort.watch(None)
        if response.will_close:
            self.close()
        else:
            self._local.used_at = time.monotonic()
        return self._answer(response, text)

    def stream(self, path: str, *, silence: float, abort: Abort) -> Iterator[Tuple[str, Any]]:
        """The events of a stream: their type and their JSON. Ends when the server closes it; else raises as ask() does."""
        connection = self._open(self._timeout)
        try:
            abort.watch(connection.sock)
            connection.request("GET", self._parts.path + path, headers={**self._headers, "accept": "text/event-stream"})
            response = connection.getresponse()
            if response.status != 200 or response.headers.get_content_type() != "text/event-stream":
                self._answer(response, response.read(_REFUSAL_BYTES))
                raise ConnectionFailed(f"{self.url} responds without a stream of events", status=response.status)
            if connection.sock is not None:
                connection.sock.settimeout(silence)
            yield from _events(response)
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionFailed(f"lost a stream of Rota at {self.url}: {error!r}") from error
        finally:
            abort.watch(None)
            self.close()

    def _open(self, timeout: float) -> http.client.HTTPConnection:
        connection: Optional[http.client.HTTPConnection] = getattr(self._local, "connection", None)
        if connection is not None and connection.sock is not None:
            if time.monotonic() - self._local.used_at < _REUSE_SECONDS:
                connection.sock.settimeout(timeout)
                return connection
            self.close()
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(str(self._parts.hostname), self._parts.port, timeout=timeout)
        try:
            connection.connect()
        except OSError as error:
            message = f"cannot reach Rota at {self.url}: {error}"
            raise ConnectionFailed(message, may_have_happened=False) from error
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._local.connection = connection
        return connection

    def close(self) -> None:
        """Closes the connection of this thread. The next request opens another."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
        self._local.connection = None

    def _answer(self, response: http.client.HTTPResponse, text: bytes) -> Any:
        try:
            answer = json.loads(text) if text else None
        except ValueError:
            answer = None
        if response.status < 300 and answer is not None:
            return answer
        if isinstance(answer, dict) and isinstance(answer.get("code"), str):
            raise RotaError(
                str(answer.get("error", answer["code"])),
                code=answer["code"],
                status=response.status,
                retryable=answer.get("retryable") is True,
                details=answer.get("details"),
                retry_after=_seconds(response.getheader("retry-after")),
            )
        shown = text[:100].decode("utf-8", "replace")
        message = f"{self.url} does not respond as Rota does: status {response.status}, {shown!r}"
        raise ConnectionFailed(message, status=response.status)


def _events(response: http.client.HTTPResponse) -> Iterator[Tuple[str, Any]]:
    kind, data = "message", ""
    while True:
        line = response.readline(_LINE_BYTES)
        if not line:
            return
        name, _, value = line.decode("utf-8", "replace").rstrip("\r\n").partition(":")
        if name == "event":
            kind = value.strip()
        elif name == "data":
            data += value.strip()
        elif not name and not value:
            if data:
                yield kind, json.loads(data)
            kind, data = "message", ""


def segment(text: object) -> str:
    """A part of a path."""
    return quote(str(text), safe="")


def _query(query: Optional[Mapping[str, Any]]) -> str:
    given = {name: _query_value(value) for name, value in (query or {}).items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def _query_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(str(each) for each in value)
    return str(value)


def _seconds(header: Optional[str]) -> Optional[float]:
    try:
        return None if header is None else max(float(header), 0.0)
    except ValueError:
        return None
