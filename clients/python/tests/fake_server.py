"""A server in this process that answers as a test says, and remembers the requests."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeServer:
    """``answer(method, path, body)`` returns a status and JSON, and optionally headers. None closes the connection."""

    def __init__(self, answer):
        self.requests = []
        #: The headers and bodies of submitted tasks.
        self.submitted = []
        self.answer = answer
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self):
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                fake.requests.append((self.command, self.path, body))
                if (self.command, self.path) == ("POST", "/v1/tasks"):
                    fake.submitted.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.server.last_headers = dict(self.headers)
                answer = fake.answer(self.command, self.path, body)
                if answer is None:
                    self.close_connection = True
                    return
                status, content, *headers = answer
                text = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                for name, value in (headers[0] if headers else {}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PATCH = do_DELETE = _serve

            def log_message(self, *_arguments):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        # A worker that stops closes its open claim.
        self._server.handle_error = lambda *_arguments: None
        self._server.last_headers = {}
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def headers(self):
        return self._server.last_headers

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class FakeRota:
    """Speaks the worker protocol for a fixed list of attempts."""

    def __init__(self, attempts):
        self._lock = threading.Lock()
        self._waiting = list(attempts)
        self.cancel = {}
        #: Messages in mode steer, which heartbeats that ask for them get.
        self.messages = []
        self.refuse = lambda _path, _body: False
        #: By the start of a path: answers in place of the right one, each once. None closes the connection.
        self.instead = {}
        self.finished = {}
        self.finishes_per_claim = 0
        #: The tokens of each claim that carried outcomes.
        self.carried = []
        self.beats = []
        self.all_finished = threading.Event()
        self._count = len(self._waiting)
        self.server = FakeServer(self._answer)

    def attempt_ended(self):
        """For attempts that end without a finish."""
        self._count -= 1

    def _answer(self, method, path, body):
        with self._lock:
            if self.refuse(path, body):
                return 400, {"code": "invalid_field", "error": "refused by the test"}
            for start, answers in self.instead.items():
                if path.startswith(start) and answers:
                    return answers.pop(0)
            if path == "/v1/tasks":
                return 202, {"taskId": "tsk_child", "state": "queued", "position": 1}
            if path == "/v1/workers":
                registered = {"workerId": "wrk_1", "leaseMs": 15000, "heartbeatMs": 500, "maxWaitS": 0}
                return 201, {**registered, "finishesPerClaim": self.finishes_per_claim}
            if method == "DELETE":
                return 200, {"released": []}
            if path.startswith("/v1/attempts/"):
                return 200, {"result": f"result of {path.rsplit('/', 1)[1]}"}
            if path.endswith("/claim"):
                taken, self._waiting = self._waiting[: body["max"]], self._waiting[body["max"] :]
                if "finishes" not in body:
                    return 200, {"attempts": taken, **({} if taken else {"retryInMs": 50})}
                self.carried.append([finish["attemptToken"] for finish in body["finishes"]])
                return 200, {"attempts": taken, "finished": self._finish(body["finishes"])}
            if path.endswith("/heartbeat"):
                self.beats.extend(body["attempts"])
                return 200, {"attempts": [self._alive(attempt) for attempt in body["attempts"]], "drain": False}
            return 200, {"attempts": self._finish(body["attempts"])}

    def _finish(self, finishes):
        for finish in finishes:
            self.finished[finish["attemptToken"]] = finish
        if len(self.finished) >= self._count:
            self.all_finished.set()
        return [{"attemptToken": finish["attemptToken"], "recorded": True} for finish in finishes]

    def _alive(self, named):
        token = named["attemptToken"]
        if token in self.cancel:
            return {"attemptToken": token, "ok": False, "cancel": self.cancel[token]}
        if "messagesAfter" not in named:
            return {"attemptToken": token, "ok": True}
        messages = [each for each in self.messages if each["position"] > named["messagesAfter"]]
        return {"attemptToken": token, "ok": True, **({"messages": messages} if messages else {})}


def attempt(token, message, **fields):
    task = {"taskId": f"tsk_{token}", "agentId": "py", "kind": "message", "message": message, **fields.pop("task", {})}
    return {"attemptToken": token, "number": 1, "leaseMs": 15000, "timeoutMs": 120000, "task": task, **fields}
