import { describe, expect, test } from "vitest";
import type { RotaEvent } from "../../src/model/event.ts";
import { errorOf, type Open, type Opened } from "./opened.ts";

const KEY = "sk-planted-key";
const PASSWORD = "planted-password";
const llmConfig = { provider: "openai", apiKey: KEY, aws: { secretAccessKey: KEY, sessionToken: KEY } };
const shownConfig = {
  provider: "openai",
  apiKey: "…",
  aws: { secretAccessKey: "…", sessionToken: "…" },
};

export function describeSecrets(open: Open): void {
  /** An agent that keeps its input, returns it, and repeats it in its errors. */
  async function openLeaky({ redact = ["password"] } = {}): Promise<Opened & { handed: unknown[] }> {
    const opened = await open({ options: { redact } });
    const handed: unknown[] = [];
    opened.rota.agent("leaky", async (task, { progress }) => {
      handed.push(task.llmConfig ?? task.payload ?? task.params);
      progress({ step: 1, password: PASSWORD });
      if (task.metadata?.["fails"] === true) {
        throw new Error(`refused {"password":"${PASSWORD}"} and ${KEY}`);
      }
      return { saw: task.payload ?? task.llmConfig ?? null, password: PASSWORD };
    });
    return { ...opened, handed };
  }

  describe("secrets in tasks", () => {
    test("are masked in every reading, and handed to the executor as they are", async () => {
      const { api, handed } = await openLeaky();
      const events: RotaEvent[] = [];
      const stream = api.events({ after: 0 });
      const read = (async () => {
        for await (const event of stream) {
          events.push(event);
          if (events.filter(({ type }) => /completed|failed/.test(type)).length === 3) return;
        }
      })();
      const payload = { user: "ann", deep: [{ password: PASSWORD }] };
      const shownPayload = { user: "ann", deep: [{ password: "…" }] };
      const metadata = { note: { password: PASSWORD } };
      const { taskIds, batchId } = await api.tasks.submitBatch({
        agentId: "leaky",
        tasks: [
          { payload, metadata },
          { instruction: "go", llmConfig },
          {
            payload,
            metadata: { fails: true },
          },
        ],
      });
      const [first = "", second = "", third = ""] = taskIds;
      for (const id of taskIds) await api.tasks.wait(id);
      await read;
      expect(handed).toEqual([payload, llmConfig, payload]);
      expect(await api.tasks.get(first)).toMatchObject({
        payload: shownPayload,
        metadata: { note: { password: "…" } },
        result: { saw: shownPayload, password: "…" },
      });
      expect(await api.tasks.get(second)).toMatchObject({ llmConfig: shownConfig });
      const failed = await api.tasks.get(third);
      expect([failed.error, failed.attempts[0]?.error]).toEqual([
        expect.stringContaining('refused {"password":"…"} and '),
        failed.error,
      ]);
      const readings = [
        await api.tasks.list(),
        await api.tasks.listRows(),
        await api.tasks.getBatch(batchId),
        await api.tasks.wait(third),
        await api.tasks.explain(third),
        events,
      ];
      // Rota does not mask other fields of a result than the listed ones.
      const text = JSON.stringify(readings).replaceAll(JSON.stringify({ saw: llmConfig }), "");
      expect(text).not.toContain(PASSWORD);
      expect((await api.tasks.listRows()).tasks.map(({ title }) => title)).toContain(
        JSON.stringify(shownPayload),
      );
      expect(events.find(({ type }) => type === "task.progress")?.progress).toEqual({
        step: 1,
        password: "…",
      });
    });

    test("are masked in llmConfig without being listed, and errors do not repeat them", async () => {
      const { api, handed } = await openLeaky({ redact: [] });
      const { taskId } = await api.tasks.submit({
        agentId: "leaky",
        instruction: "go",
        llmConfig,
        metadata: { fails: true },
        retryPolicy: { maxRetries: 0 },
      });
      const task = await api.tasks.wait(taskId);
      expect(task.llmConfig).toEqual(shownConfig);
      expect(task.error).toBe(`refused {"password":"${PASSWORD}"} and …`);
      await api.tasks.retry(taskId);
      await api.tasks.wait(taskId);
      expect(handed).toEqual([llmConfig, llmConfig]);
    });

    test("are masked in schedules, their runs and notifications", async () => {
      const { api, handed } = await openLeaky();
      const payload = { password: PASSWORD };
      const { scheduled_task } = await api.schedules.create({
        schedule: "every day at 09:00",
        agent: "leaky",
        payload,
        metadata: payload,
      });
      const { id } = scheduled_task;
      await api.schedules.run(id);
      const { tasks } = await api.tasks.list({ scheduleId: id });
      await api.tasks.wait(tasks[0]?.taskId ?? "");
      await api.schedules.update(id, { metadata: { fails: true, ...payload }, retry: { max_retries: 0 } });
      await api.schedules.run(id);
      const { tasks: later } = await api.tasks.list({ scheduleId: id });
      await api.tasks.wait(later[0]?.taskId ?? "");
      const notices: unknown[] = [];
      for await (const notice of api.notifications({ after: 0 })) {
        notices.push(notice);
        if (notice.kind === "run.failed") break;
      }
      expect(handed).toEqual([payload, payload]);
      const { runs } = await api.runs.list();
      expect(runs.map(({ result_summary, error_message }) => result_summary ?? error_message)).toEqual([
        expect.stringContaining('{"password":"…"}'),
        '{"saw":{"password":"…"},"password":"…"}',
      ]);
      const readings = [
        scheduled_task,
        await api.schedules.list(),
        await api.schedules.get(id),
        await api.schedules.runs(id),
        runs,
        notices,
      ];
      expect(JSON.stringify(readings)).not.toContain(PASSWORD);
      expect(await errorOf(api.schedules.update(id, { payload: { password: "…" } }))).toMatchObject({
        code: "invalid_field",
        message: "`payload.password` is masked: write the value",
      });
    });

    test("cannot be submitted as the mask, and idempotency compares them as they are", async () => {
      const { api } = await openLeaky();
      const refused = (input: object) => errorOf(api.tasks.submit(input as never));
      expect(await refused({ instruction: "go", llmConfig: { aws: { sessionToken: "…" } } })).toMatchObject({
        code: "invalid_field",
        message: "`llmConfig.aws.sessionToken` is masked: write the value",
        details: { field: "llmConfig.aws.sessionToken" },
      });
      for (const field of [
        { payload: [{ Password: "…" }] },
        { agentId: "a", action: "type", params: { password: "…" } },
        { message: "x", metadata: { password: "…" } },
      ]) {
        expect(await refused(field)).toMatchObject({
          message: expect.stringContaining("is masked: write the value"),
        });
      }
      const submit = (apiKey: string) =>
        api.tasks.submit({ instruction: "go", llmConfig: { apiKey }, idempotencyKey: "once" });
      const first = await submit("one-of-the-keys");
      expect(await submit("one-of-the-keys")).toMatchObject({ taskId: first.taskId });
      expect(await errorOf(submit("another-of-the-keys"))).toMatchObject({ code: "idempotency_conflict" });
      expect((await api.tasks.counts()).total).toBe(1);
    });

    test("are copied when a task is submitted again, as it was or with changes beside them", async () => {
      const { api, handed } = await openLeaky();
      const metadata = { password: PASSWORD, note: 1 };
      const { taskId } = await api.tasks.submit({ agentId: "leaky", instruction: "go", llmConfig, metadata });
      await api.tasks.wait(taskId);
      const again = await api.tasks.submitAgain(taskId);
      expect(again.taskId).not.toBe(taskId);
      const edited = await api.tasks.submitAgain(taskId, {
        agentId: "leaky",
        instruction: "go on",
        llmConfig: shownConfig,
        metadata: { note: 2 },
      });
      await api.tasks.wait(again.taskId);
      expect(await api.tasks.wait(edited.taskId)).toMatchObject({
        instruction: "go on",
        llmConfig: shownConfig,
        metadata: { note: 2 },
      });
      expect(handed).toEqual([llmConfig, llmConfig, llmConfig]);
    });

    test("are not copied to another agent, or beside what has changed", async () => {
      const { api } = await openLeaky();
      const { taskId } = await api.tasks.submit({ agentId: "leaky", instruction: "go", llmConfig });
      const elsewhere = { agentId: "other", instruction: "go", llmConfig: shownConfig };
      const changed = { ...shownConfig, baseUrl: "https://elsewhere.example" };
      const masked = { code: "invalid_field", message: "`llmConfig.apiKey` is masked: write the value" };
      expect(await errorOf(api.tasks.submitAgain(taskId, elsewhere))).toMatchObject(masked);
      expect(
        await errorOf(
          api.tasks.submitAgain(taskId, { agentId: "leaky", instruction: "go", llmConfig: changed }),
        ),
      ).toMatchObject(masked);
      expect(await errorOf(api.tasks.submitAgain("tsk_gone"))).toMatchObject({ code: "not_found" });
      expect((await api.tasks.counts()).total).toBe(1);
    });
  });
}
