import asyncio
import json
import logging
import subprocess
import sys
import threading
import time
import unittest

import rota

from .fake_server import FakeRota, attempt

logging.getLogger("rota.worker").setLevel(logging.CRITICAL)


class WorkerTest(unittest.TestCase):
    def run_worker(self, attempts, handler, *, slots=4, until=None, instead=None):
        """Runs a worker until every attempt is finished, or until this event is set."""
        fake = FakeRota(attempts)
        fake.instead = instead or {}
        self.addCleanup(fake.server.close)
        worker = rota.Worker(fake.server.url, "rota_key", agents={"py": handler}, slots=slots)
        worker.start()
        self.addCleanup(worker.stop)
        event = until or fake.all_finished
        self.assertTrue(event.wait(20), "the attempts were not finished in time")
        return fake, worker

    def test_finishes_with_what_the_handler_returns(self):
        attempts = [attempt(f"t{n}", f"hello {n}") for n in range(5)]
        fake, _ = self.run_worker(attempts, lambda task, context: {"said": task["message"], "attempt": context.attempt})
        self.assertEqual(
            {token: finish["result"] for token, finish in fake.finished.items()},
            {f"t{n}": {"said": f"hello {n}", "attempt": 1} for n in range(5)},
        )
        self.assertEqual({finish["outcome"] for finish in fake.finished.values()}, {"done"})

    def test_run_says_what_it_waits_for_even_if_the_program_configures_no_logging(self):
        fake = FakeRota([attempt("t1", "go")])
        self.addCleanup(fake.server.close)
        program = """
import sys, threading, rota
worker = rota.Worker(sys.argv[1], "rota_key")

@worker.agent("py")
def stop(task, context):
    threading.Thread(target=worker.stop).start()

worker.run()
"""
        ended = subprocess.run(
            [sys.executable, "-c", program, fake.server.url], stderr=subprocess.PIPE, text=True, timeout=20
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stderr, "INFO worker wrk_1 waits for tasks of py\n(.*\n)*.* INFO stopped\n$")

    def test_what_a_handler_submits_carries_the_token_of_its_attempt(self):
        seen = []

        def handler(task, context):
            answer = context.submit(message="part")
            seen.append((context.task_token, answer["taskId"]))

        fake, _ = self.run_worker([{**attempt("t1", "go"), "taskToken": "rtt_1"}], handler)
        self.assertEqual(seen, [("rtt_1", "tsk_child")])
        headers, body = fake.server.submitted[0]
        self.assertEqual((headers["x-rota-task-token"], headers["x-rota-via"]), ("rtt_1", "worker"))
        self.assertNotIn("authorization", headers)
        self.assertEqual(body["message"], "part")

    def test_async_handlers_run_at_once_on_one_loop(self):
        running = []
        most = []

        async def handler(task, context):
            running.append(task["message"])
            most.append(len(running))
            await asyncio.sleep(0.2)
            running.remove(task["message"])
            return threading.current_thread().name

        fake, _ = self.run_worker([attempt(f"t{n}", str(n)) for n in range(4)], handler)
        self.assertEqual(max(most), 4)
        self.assertEqual({finish["result"] for finish in fake.finished.values()}, {"rota_asyncio"})

    def test_a_function_that_returns_a_coroutine_is_an_async_handler(self):
        async def later(task):
            await asyncio.sleep(0)
            return task["message"]

        fake, _ = self.run_worker([attempt("t1", "hello")], lambda task, context: later(task))
        self.assertEqual(fake.finished["t1"]["result"], "hello")

    def test_a_handler_takes_the_messages_for_its_session_each_once(self):
        fake = FakeRota([attempt("t1", "go", task={"sessionKey": "s"})])
        self.addCleanup(fake.server.close)
        fake.messages.append({"taskId": "tsk_left", "message": "left", "position": 3})

        def handler(task, context):
            first = context.messages()
            none = context.messages()
            fake.messages.append({"taskId": "tsk_right", "message": "right", "position": 5})
            return [first, none, context.messages()]

        worker = rota.Worker(fake.server.url, agents={"py": handler}, heartbeat_ms=500)
        worker.start()
        self.addCleanup(worker.stop)
        self.assertTrue(fake.all_finished.wait(20))
        left, right = {"taskId": "tsk_left", "message": "left"}, {"taskId": "tsk_right", "message": "right"}
        self.assertEqual(fake.finished["t1"]["result"], [[left], [], [right]])
        self.assertEqual([beat["messagesAfter"] for beat in fake.beats if "messagesAfter" in beat], [0, 3, 3])

    def test_a_task_without_a_session_has_no_messages(self):
        fake, _ = self.run_worker([attempt("t1", "go")], lambda task, context: context.messages())
        self.assertEqual(fake.finished["t1"]["result"], [])

    def test_a_handler_that_waits_for_messages_ends_when_it_is_cancelled(self):
        raised = []
        ended = threading.Event()

        def handler(task, context):
            try:
                while True:
                    context.messages()
            except rota.Cancelled as error:
                raised.append(str(error))
                ended.set()
                raise

        fake = FakeRota([attempt("t1", "go", task={"sessionKey": "s"})])
        self.addCleanup(fake.server.close)
        fake.cancel["t1"] = "preempted"
        worker = rota.Worker(fake.server.url, agents={"py": handler})
        worker.start()
        self.addCleanup(worker.stop)
        self.assertTrue(ended.wait(20))
        self.assertEqual(raised, ["preempted"])

    def test_a_coroutine_that_ignores_its_cancel_keeps_its_slot(self):
        go_on = threading.Event()
        cancelled = threading.Event()

        async def handler(task, context):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.set()
                while not go_on.is_set():
                    await asyncio.sleep(0.01)

        fake = FakeRota([attempt("t1", "go")])
        self.addCleanup(fake.server.close)
        fake.cancel["t1"] = "cancelled"
        worker = rota.Worker(fake.server.url, agents={"py": handler})
        worker.start()
        self.addCleanup(worker.stop)
        self.addCleanup(go_on.set)
        self.assertTrue(cancelled.wait(20))
        self.assertEqual(worker.running, 1)
        go_on.set()
        with worker._changed:
            self.assertTrue(worker._changed.wait_for(lambda: worker.running == 0, 20))

    def test_never_runs_more_than_its_slots(self):
        lock = threading.Lock()
        running = 0
        most = 0

        def handler(task, context):
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.05)
            with lock:
                running -= 1

        self.run_worker([attempt(f"t{n}", str(n)) for n in range(12)], handler, slots=3)
        self.assertEqual(most, 3)

    def test_a_claim_carries_outcomes_while_all_slots_are_taken(self):
        for refuse, carries in ((lambda _path, _body: False, True), (lambda _path, body: "finishes" in body, False)):
            fake = FakeRota([attempt(f"t{n}", str(n)) for n in range(6)])
            self.addCleanup(fake.server.close)
            fake.finishes_per_claim = 100
            fake.refuse = lambda path, body: body is not None and refuse(path, body)
            worker = rota.Worker(fake.server.url, agents={"py": lambda task, _: time.sleep(0.05)}, slots=2)
            worker.start()
            self.addCleanup(worker.stop)
            self.assertTrue(fake.all_finished.wait(20), "the attempts were not finished in time")
            self.assertEqual(set(fake.finished), {f"t{n}" for n in range(6)})
            self.assertEqual(len(fake.carried) > 0, carries)
            worker.stop()
            self.assertEqual(worker.running, 0)

    def test_failures_say_whether_and_when_to_retry(self):
        def handler(task, context):
            if task["message"] == "never":
                raise rota.PermanentError("no such page")
            if task["message"] == "later":
                raise rota.RetryLater("busy", after=1.5)
            if task["message"] == "next week":
                raise rota.RetryLater("busy", after=604_800)
            if task["message"] == "whenever":
                raise rota.RetryLater("busy", after=float("inf"))
            if task["message"] == "unknown":
                raise rota.RetryLater("busy", after=float("nan"))
            if task["message"] == "nan":
                return float("nan")
            if task["message"] == "key":
                return task["instruction"]
            raise RuntimeError

        words = ["never", "later", "next week", "whenever", "unknown", "nan", "key", "plain"]
        fake, _ = self.run_worker([attempt(word, word) for word in words], handler)
        self.assertEqual(
            fake.finished["never"],
            {"attemptToken": "never", "outcome": "failed", "error": "no such page", "retryable": False},
        )
        self.assertEqual(fake.finished["later"]["retryAfterMs"], 1500)
        self.assertTrue(fake.finished["later"]["retryable"])
        # The longest pause that the server accepts.
        self.assertEqual(fake.finished["next week"]["retryAfterMs"], 86_400_000)
        self.assertEqual(fake.finished["whenever"]["retryAfterMs"], 86_400_000)
        self.assertEqual(fake.finished["unknown"]["retryAfterMs"], 0)
        self.assertEqual(fake.finished["nan"]["outcome"], "failed")
        self.assertEqual(fake.finished["key"]["error"], "KeyError: 'instruction'")
        self.assertEqual(fake.finished["plain"]["error"], "RuntimeError")

    def test_does_not_send_a_result_that_no_server_accepts(self):
        attempts = [attempt("big", "1100000"), attempt("small", "1")]
        fake, _ = self.run_worker(attempts, lambda task, context: "x" * int(task["message"]))
        self.assertEqual(fake.finished["small"]["result"], "x")
        big = fake.finished["big"]
        self.assertEqual((big["outcome"], big["retryable"]), ("failed", False))
        self.assertTrue(big["error"].startswith("the result was refused: it is larger than 1048576 bytes"), big["error"])
        self.assertTrue(all(len(json.dumps(body)) < 1_048_576 for _, _, body in fake.server.requests))

    def test_reports_progress_log_lines_and_the_sum_of_usage(self):
        def handler(task, context):
            context.progress({"step": 1})
            context.log("first")
            context.log("second", level="warn")
            context.usage(input_tokens=10, output_tokens=1, context_window=4000)
            context.usage(input_tokens=5)
            return "done"

        fake, _ = self.run_worker([attempt("t", "x")], handler)
        lines = [line for beat in fake.beats for line in beat.get("log", [])]
        self.assertEqual([(line["level"], line["text"]) for line in lines], [("info", "first"), ("warn", "second")])
        self.assertTrue(all(line["at"].endswith("Z") for line in lines))
        self.assertIn({"step": 1}, [beat.get("progress") for beat in fake.beats])
        self.assertEqual(
            fake.finished["t"]["usage"],
            {"inputTokens": 15, "outputTokens": 1, "contextTokens": 5, "contextWindow": 4000},
        )

    def test_log_lines_up_to_the_last_arrive_before_the_end(self):
        def handler(task, context):
            for number in range(50):
                context.log(f"{number} {'x' * 3000}")

        fake, _ = self.run_worker([attempt("t", "x")], handler)
        lines = [line["text"] for beat in fake.beats for line in beat.get("log", [])]
        self.assertEqual([int(line.split()[0]) for line in lines], list(range(50)))

    def test_a_heartbeat_that_the_server_refuses_is_sent_again_without_what_it_reported(self):
        fake = FakeRota([attempt("t", "x")])
        self.addCleanup(fake.server.close)
        fake.refuse = lambda path, body: path.endswith("/heartbeat") and "progress" in body["attempts"][0]

        def handler(task, context):
            context.progress("refused")
            context.sleep(30)

        worker = rota.Worker(fake.server.url, agents={"py": handler})
        worker.start()
        self.addCleanup(worker.stop, grace=0)
        deadline = time.monotonic() + 10
        while len(fake.beats) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(fake.beats[:2], [{"attemptToken": "t"}, {"attemptToken": "t"}])

    def test_refuses_wrong_reports_in_the_handler(self):
        context = rota.Context(attempt("t", "x"), lambda: None)
        with self.assertRaisesRegex(ValueError, "input_tokens must be a whole number"):
            context.usage(input_tokens=-1)
        with self.assertRaisesRegex(ValueError, "larger than 16384 bytes"):
            context.progress("x" * 20_000)

    def test_a_heartbeat_carries_no_more_than_the_server_accepts(self):
        context = rota.Context(attempt("t", "x"), lambda: None)
        for number in range(40):
            context.log(f"{number} {'x' * 3000}")
        wire, _ = context._heartbeat(60_000)
        self.assertLess(len(json.dumps(wire)), 65_536)
        sent = len(wire["log"])
        context._sent(wire)
        following, _ = context._heartbeat(60_000)
        self.assertTrue(following["log"][0]["text"].startswith(f"{sent} "))

    def test_a_cancel_ends_handlers_in_threads_and_on_the_loop(self):
        ended = threading.Event()
        reasons = []

        def in_thread(task, context):
            try:
                context.sleep(30)
            except rota.Cancelled as error:
                reasons.append(str(error))
                raise
            finally:
                if len(reasons) == 2:
                    ended.set()

        async def on_loop(task, context):
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                reasons.append(context.reason)
                raise
            finally:
                if len(reasons) == 2:
                    ended.set()

        async def dispatch(task, context):
            await on_loop(task, context)

        fake = FakeRota([attempt("a", "x"), attempt("b", "x", task={"agentId": "loop"})])
        self.addCleanup(fake.server.close)
        fake.cancel = {"a": "timeout", "b": "cancelled"}
        worker = rota.Worker(fake.server.url, agents={"py": in_thread, "loop": dispatch}, slots=2)
        worker.start()
        self.addCleanup(worker.stop)
        self.assertTrue(ended.wait(20))
        self.assertEqual(sorted(reasons), ["cancelled", "timeout"])
        deadline = time.monotonic() + 5
        while worker.running and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(worker.running, 0)
        self.assertEqual(fake.finished, {})

    def test_calls_on_cancel_once_also_when_it_is_too_late(self):
        context = rota.Context(attempt("t", "x"), lambda: None)
        called = []
        context.on_cancel(lambda: called.append("first"))
        context._cancel("cancelled")
        context._cancel("cancelled")
        context.on_cancel(lambda: called.append("second"))
        self.assertEqual(called, ["first", "second"])
        with self.assertRaises(rota.Cancelled):
            context.check()

    def test_ends_an_attempt_at_its_timeout_when_the_server_does_not(self):
        # Two milliseconds had passed when the task was sent. The error is the one that Rota itself would give.
        sent = attempt("t", "x", timeoutMs=100, task={"timeout": 102})
        fake, _ = self.run_worker([sent], lambda task, context: context.sleep(30))
        self.assertEqual(fake.finished["t"]["error"], "timed out after 102 ms")
        self.assertTrue(fake.finished["t"]["retryable"])

    def test_fetches_results_of_dependencies_that_were_too_large(self):
        dependencies = [
            {"taskId": "tsk_a", "result": 1},
            {"taskId": "tsk_b", "resultBytes": 9_000_000, "omitted": True},
        ]
        fake, _ = self.run_worker(
            [attempt("t", "x", task={"dependencies": dependencies})],
            lambda task, context: [each["result"] for each in task["dependencies"]],
        )
        self.assertEqual(fake.finished["t"]["result"], [1, "result of tsk_b"])

    def test_reads_again_what_a_handler_needs_while_the_server_is_busy_or_away(self):
        busy = (503, {"code": "storage_unavailable", "error": "busy"})
        asked_to_wait = (429, {"code": "rate_limited", "error": "too many"}, {"retry-after": "0"})
        instead = {"/v1/attempts/": [asked_to_wait, busy, None]}
        dependencies = [{"taskId": "tsk_b", "resultBytes": 9_000_000, "omitted": True}]
        fake, _ = self.run_worker(
            [attempt("t", "x", task={"dependencies": dependencies})],
            lambda task, context: task["dependencies"][0]["result"],
            instead=instead,
        )
        self.assertEqual(fake.finished["t"]["result"], "result of tsk_b")
        self.assertEqual(instead, {"/v1/attempts/": []})

    def test_registers_again_when_there_was_no_room(self):
        full = (429, {"code": "quota_exceeded", "error": "there are 1000 workers"}, {"retry-after": "0"})
        fake, _ = self.run_worker([attempt("t", "x")], lambda task, _: "done", instead={"/v1/workers": [full]})
        self.assertEqual(fake.finished["t"]["result"], "done")

    def test_releases_what_still_runs_after_the_grace(self):
        fake = FakeRota([attempt("t", "x")])
        self.addCleanup(fake.server.close)
        began = threading.Event()

        def handler(task, context):
            began.set()
            context.sleep(30)

        worker = rota.Worker(fake.server.url, agents={"py": handler})
        worker.start()
        self.assertTrue(began.wait(10))
        worker.stop(grace=0.1)
        self.assertEqual(fake.finished["t"], {"attemptToken": "t", "outcome": "released"})
        self.assertEqual(fake.server.requests[-1][:2], ("DELETE", "/v1/workers/wrk_1"))

    def test_refuses_to_run_without_agents_or_slots(self):
        with self.assertRaisesRegex(ValueError, "no agents"):
            rota.Worker("http://127.0.0.1:1").start()
        for slots in (0, "4"):
            with self.assertRaisesRegex(ValueError, "slots must be a number from 1 to 1000, not "):
                rota.Worker(slots=slots)
        with self.assertRaisesRegex(ValueError, "agents must be a dict of handlers by agent, .*, not \\['py'\\]"):
            rota.Worker(agents=["py"])
        with self.assertRaisesRegex(ValueError, "handler of the agent 'py' must be a function, not 5"):
            rota.Worker(agents={"py": 5})
        with self.assertRaisesRegex(ValueError, 'name the agent, as in @worker.agent\\("shout"\\), not <function'):
            rota.Worker().agent(lambda task, context: None)
        with self.assertRaisesRegex(ValueError, "url must be"):
            rota.Worker("ftp://example.com")


if __name__ == "__main__":
    unittest.main()
