import unittest

import rota

from .fake_server import FakeServer


class ClientTest(unittest.TestCase):
    def client(self, answers, **options):
        """A client of a server that gives these answers in order, the last one for ever."""
        left = list(answers)
        server = FakeServer(lambda *_request: left.pop(0) if len(left) > 1 else left[0])
        self.addCleanup(server.close)
        client = rota.Client(server.url, "rota_key", **options)
        self.addCleanup(client.close)
        return client, server

    def test_submits_with_the_names_of_the_api_and_a_key_that_makes_retries_safe(self):
        client, server = self.client([None, (202, {"taskId": "tsk_1"})])
        self.assertEqual(client.submit(agent="py", message="hello", priority="high"), {"taskId": "tsk_1"})
        (first, second) = server.requests
        self.assertEqual(first, second)
        self.assertEqual(first[:2], ("POST", "/v1/tasks"))
        self.assertTrue(first[2].pop("idempotencyKey"))
        self.assertEqual(first[2], {"agentId": "py", "message": "hello", "priority": "high"})
        self.assertEqual(server.headers["authorization"], "Bearer rota_key")

    def test_sends_a_payload_of_null(self):
        client, server = self.client([(202, {"taskId": "tsk_1"})])
        client.submit(payload=None, idempotencyKey="k")
        self.assertEqual(server.requests[0][2], {"payload": None, "idempotencyKey": "k"})

    def test_errors_have_the_code_of_the_server(self):
        refusal = {"code": "invalid_field", "error": "`priority` must be …", "details": {"field": "priority"}}
        client, _ = self.client([(400, refusal)])
        with self.assertRaises(rota.RotaError) as caught:
            client.submit(message="x", priority="urgent")
        error = caught.exception
        self.assertEqual((error.code, error.status, error.retryable), ("invalid_field", 400, False))
        self.assertEqual(str(error), "`priority` must be …")
        self.assertEqual(error.details, {"field": "priority"})

    def test_a_full_queue_is_not_retried(self):
        full = (429, {"code": "queue_full", "error": "rejected: agent queue full", "retryable": True})
        client, server = self.client([full])
        with self.assertRaises(rota.RotaError):
            client.submit(message="x")
        self.assertEqual(len(server.requests), 1)

    def test_waits_as_the_server_asks(self):
        busy = (503, {"code": "draining", "error": "draining", "retryable": True}, {"retry-after": "0"})
        client, server = self.client([busy, (200, {"taskId": "tsk_1", "state": "done"})])
        self.assertEqual(client.get("tsk_1")["state"], "done")
        self.assertEqual(len(server.requests), 2)

    def test_reports_whether_a_request_may_have_happened(self):
        client, _ = self.client([None], retries=0)
        with self.assertRaises(rota.ConnectionFailed) as caught:
            client.cancel("tsk_1")
        self.assertTrue(caught.exception.may_have_happened)
        with self.assertRaises(rota.ConnectionFailed) as caught:
            rota.Client("http://127.0.0.1:9", retries=0).get("tsk_1")
        self.assertFalse(caught.exception.may_have_happened)

    def test_waits_until_the_task_has_ended_over_failures(self):
        away = (502, "no JSON of Rota")
        running = (200, {"taskId": "tsk_1", "state": "running"})
        done = (200, {"taskId": "tsk_1", "state": "done", "result": 1})
        client, server = self.client([running, away, done])
        self.assertEqual(client.wait("tsk_1")["result"], 1)
        self.assertTrue(server.requests[0][1].startswith("/v1/tasks/tsk_1?wait="))

    def test_a_wait_has_an_end(self):
        client, _ = self.client([(200, {"taskId": "tsk_1", "state": "running"})])
        with self.assertRaises(TimeoutError):
            client.wait("tsk_1", timeout=0.2)

    def test_says_schedules_and_explains(self):
        client, server = self.client([(200, {"taskId": "tsk_1", "scheduled_task": {"id": 7}, "schedules": [], "runs": []})])
        client.say("user:42/a", "hello", agent="py")
        client.stop("user:42/a")
        self.assertEqual(client.schedule("every day at 9:00", message="hi", agent="py"), {"id": 7})
        client.update_schedule(7, status="paused")
        client.delete_schedule(7)
        client.schedules(status="active")
        client.runs(7)
        client.explain("tsk_1")
        client.list(state=["failed", "done"], limit=5)
        self.assertEqual(
            [request[:2] for request in server.requests],
            [
                ("POST", "/v1/sessions/user%3A42%2Fa/messages"),
                ("POST", "/v1/sessions/user%3A42%2Fa/stop"),
                ("POST", "/v1/schedules"),
                ("PATCH", "/v1/schedules/7"),
                ("DELETE", "/v1/schedules/7"),
                ("GET", "/v1/schedules?status=active"),
                ("GET", "/v1/schedules/7/runs"),
                ("GET", "/v1/tasks/tsk_1/explain"),
                ("GET", "/v1/tasks?state=failed%2Cdone&limit=5"),
            ],
        )
        self.assertEqual(server.requests[0][2], {"message": "hello", "agentId": "py"})


if __name__ == "__main__":
    unittest.main()
