"""The same worker in Python: each task is a call of the agents' program, read as the executor `http` reads it."""

import json
import logging
import sys
import urllib.error
import urllib.request

import rota

logging.basicConfig(level=logging.INFO, stream=sys.stderr)
URL, KEY, NAME, PROGRAM_URL, AGENT, SLOTS = sys.argv[1:7]
#: Answers that a retry would only repeat.
PERMANENT = {400, 401, 403, 404, 405, 410, 413, 422}

worker = rota.Worker(URL, KEY, name=NAME, slots=int(SLOTS))


@worker.agent(AGENT)
def call(task, context):
    attempts = [*task.get("attempts", []), {}]
    if len(attempts) > 1:
        attempts.pop()
    attempts[-1] = {**attempts[-1], "number": context.attempt, "node": worker.worker_id}
    request = urllib.request.Request(
        PROGRAM_URL,
        data=json.dumps({**task, "attempts": attempts}).encode(),
        headers={"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            context.on_cancel(response.close)
            text = response.read().decode()
            is_json = "json" in response.headers.get("content-type", "")
    except urllib.error.HTTPError as error:
        raised = rota.PermanentError if error.code in PERMANENT else RuntimeError
        raise raised(f"HTTP {error.code}: {error.read().decode()[:1000]}") from None
    context.check()
    if is_json:
        try:
            return json.loads(text)
        except ValueError:
            pass
    return text


worker.run()
