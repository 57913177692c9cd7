import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { serve } from "../support/http-server.ts";
import { run, withServer } from "./commands.ts";
import { eventually, newFolder, runRota, startServer } from "./server-process.ts";

const MAIN = join(import.meta.dirname, "..", "..", "src", "cli", "main.ts");

const submitLater = ["submit", "--message", "later", "--run-at", "1h"];

/** Tasks that no node can execute fail at once. */
const FAIL_AT_ONCE = { ROTA_SCHEDULER_NO_EXECUTOR_SEC: "0" };

describe("rota submit", () => {
  test("prints the id alone, for scripts, and with --json the response of the API", async () => {
    const { rota, server } = await withServer();
    const { code, stdout, stderr } = await rota(
      "submit --message hello --priority high --preemptible".split(" "),
    );
    expect([code, stderr]).toEqual([0, ""]);
    const task = (await server.ask(`/tasks/${stdout.trim()}`)).body;
    expect(task).toMatchObject({ message: "hello", priority: 1, preemptible: true });

    const planned = await rota(["submit", "--message", "hi", "--agent", "nobody", "--dry-run"]);
    expect(planned.stdout).toBe("Nothing was stored. It would be queued, for agent nobody in lane main.\n");
    const asJson = await rota(["submit", "--payload", "[1]", "--json"]);
    expect(JSON.parse(asJson.stdout)).toMatchObject({
      taskId: expect.any(String),
      state: "queued",
      position: 1,
    });
  });

  test("takes a task from a file, or from stdin", async () => {
    const { rota } = await withServer();
    const file = join(newFolder(), "task.json");
    writeFileSync(file, '{"message": "from a file"}');
    expect((await rota(["submit", "--file", file, "--wait"])).stdout).toBe("from a file\n");
    const input = '{"payload": {"n": 1}}';
    expect((await rota(["submit", "--file", "-", "--wait"], { input })).stdout).toBe('{\n  "n": 1\n}\n');
  });

  test("submits a task again, with its secrets, and with what flags say over it", async () => {
    const { rota, server } = await withServer();
    const json = { instruction: "go", llmConfig: { apiKey: "sk-1234567890" }, runAt: "2100-01-01T00:00:00Z" };
    const { taskId } = (await server.ask("/tasks", { json })).body;
    const same = (await rota(["submit", "--again", taskId])).stdout.trim();
    const other = (await rota(["submit", "--again", taskId, "--priority", "high"])).stdout.trim();
    expect((await server.ask(`/tasks/${same}`)).body).toMatchObject({
      priority: 2,
      llmConfig: { apiKey: "…" },
    });
    expect((await server.ask(`/tasks/${other}`)).body).toMatchObject({
      priority: 1,
      llmConfig: { apiKey: "…" },
    });
    const elsewhere = await rota(["submit", "--again", taskId, "--agent", "other"]);
    expect([elsewhere.code, elsewhere.stderr]).toEqual([
      2,
      "error: `llmConfig.apiKey` is masked: write the value\n",
    ]);
  });

  test("with --wait prints progress on stderr and the result, and its exit code is that of the task", async () => {
    const { rota } = await withServer({ environment: FAIL_AT_ONCE });
    const done = await rota(["submit", "--message", "hello", "--wait"]);
    expect([done.code, done.stdout]).toEqual([0, "hello\n"]);
    expect(done.stderr).toMatch(/^Submitted tsk_\w+\.\nstarted\n$/);

    const asJson = await rota(["submit", "--message", "hello", "--wait", "--json"]);
    expect(JSON.parse(asJson.stdout)).toMatchObject({
      state: "done",
      result: "hello",
      attempts: [{ number: 1 }],
    });

    const failed = await rota(["submit", "--agent", "nobody", "--payload", "1", "--wait"]);
    expect([failed.code, failed.stdout]).toEqual([1, ""]);
    expect(failed.stderr).toContain('warning: agent "nobody" has no executor');
    expect(failed.stderr).toContain('error: the task failed: no executor for agent "nobody": add the agent');
  });

  test("with --wait leaves the task alone when its own time is up, or when it is interrupted", async () => {
    const { rota, start, server } = await withServer();
    const { code, stderr } = await rota([...submitLater, "--wait", "0.2"]);
    expect(code).toBe(5);
    const [, taskId] = /"rota task (tsk_\w+)" shows it/.exec(stderr) ?? [];
    expect((await server.ask(`/tasks/${taskId}`)).body.state).toBe("delayed");

    for (const [signal, expected] of [
      ["SIGINT", 130],
      ["SIGTERM", 143],
    ] as const) {
      const process = start([...submitLater, "--wait"]);
      await eventually(() => process.stderr().includes("Submitted"), "the task");
      process.kill(signal);
      expect(await process.ended).toEqual({ code: expected, signal: null });
      expect(process.stderr()).toContain("The task continues");
    }
  });

  test("with --wait outlasts a restart of the server", async () => {
    const params = { folder: newFolder(), storage: "sqlite:rota.db" };
    const first = await startServer(params);
    const args = ["submit", "--message", "hello", "--run-at", "1s", "--wait"];
    const process = runRota(args, { environment: { ROTA_URL: first.url } });
    await eventually(() => process.stderr().includes("Submitted"), "the task");
    first.kill("SIGKILL");
    await first.ended;
    await startServer({ ...params, args: ["--port", new URL(first.url).port] });
    expect(await process.ended).toEqual({ code: 0, signal: null });
    expect(process.stdout()).toBe("hello\n");
  });

  test("refuses what is wrong with 2, in a sentence, and submits nothing", async () => {
    const { rota, server } = await withServer();
    for (const [args, sentence] of [
      [["--message", "x", "--timeout", "5"], /^error: `timeout` must be /],
      [["--message", "x", "--agent", ".."], /^error: `agentId` must be .* \(--agent\)\n$/],
      [[], /^error: write what to do, .*--message, --instruction, --action and --payload\n$/],
      [["--payload", "{"], /^error: --payload must be JSON/],
      [["--file", "none.json"], /^error: cannot read none\.json: there is no such file\n$/],
      [["--mesage", "x"], /^error: unknown option '--mesage'\n\(Did you mean --message\?\)/],
      [["--message"], /^error: option '--message <text>' argument missing/],
      [["--message", "x", "--wait", "soon"], /^error: --wait must be a number of seconds/],
    ] as const) {
      const { code, stdout, stderr } = await rota(["submit", ...args]);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toMatch(sentence);
      expect(stderr).not.toMatch(/^\s+at /m);
    }
    expect((await server.ask("/tasks/stats")).body.total).toBe(0);
  });
});

describe("rota tasks", () => {
  test("lists tasks for people, newest first, safe to show", async () => {
    const { rota, submit } = await withServer({ environment: FAIL_AT_ONCE });
    await submit("--message", "two\nlines \u001b[31mred");
    await submit("--agent", "nobody", "--instruction", "Do it", "--wait");
    const { code, stdout, stderr } = await rota(["tasks"]);
    expect([code, stderr]).toEqual([0, ""]);
    const [head, first, second] = stdout.split("\n");
    expect(head).toMatch(/^TASK +STATE +AGENT +PRIO +CREATED +TOOK +WHAT$/);
    expect(first).toMatch(
      /^tsk_\w+ +failed +nobody +2 +.* ✗ no executor for agent "nobody": add .* · Do it$/,
    );
    expect(second).toMatch(/^tsk_\w+ +done +index +2 +.* two lines �\[31mred$/);
  });

  test("finds tasks by -q, --from and --to, in the order that --order says", async () => {
    const { rota, server } = await withServer();
    const ids: string[] = [];
    for (const message of ["one", "two"])
      ids.push((await server.ask("/tasks", { json: { message } })).body.taskId);
    for (const id of ids) await server.ask(`/tasks/${id}?wait=30`);
    ids.push((await rota(submitLater)).stdout.trim());
    const [one = "", two = "", later = ""] = ids;
    const found = async (...flags: string[]) => {
      const { code, stdout } = await rota(["tasks", "--json", ...flags]);
      return [code, ...JSON.parse(stdout).tasks.map(({ taskId }: { taskId: string }) => taskId)];
    };
    expect(await found("-q", two)).toEqual([0, two]);
    expect(await found("--query", two.slice(0, -1))).toContain(two);
    expect(await found("--query", "tsk_nothing")).toEqual([0]);
    expect(await found("--order", "oldest")).toEqual([0, one, two, later]);
    expect(await found("--order", "newest", "--from", "1h")).toEqual([0, later, two, one]);
    expect(await found("--to", "1h")).toEqual([0]);
    const ended = await found("--order", "completed");
    expect([ended.length, new Set(ended)]).toEqual([3, new Set([0, one, two])]);
    const { createdAt } = (await server.ask(`/tasks/${later}`)).body;
    expect(await found("--from", createdAt)).toEqual([0, later]);
    for (const [flag, value] of [
      ["--order", "sideways"],
      ["--from", "soon"],
      ["--to", "soon"],
    ] as const) {
      const { code, stderr } = await rota(["tasks", flag, value]);
      expect([code, stderr]).toEqual([2, expect.stringContaining(value)]);
    }
  });

  test("shows only those asked for, page after page", async () => {
    const { rota, server } = await withServer();
    const tasks = [0, 1, 2].map((payload) => ({ payload, runAt: "2100-01-01T00:00:00Z" }));
    await server.ask("/tasks/batch", { json: { tasks } });
    const page = await rota(["tasks", "--state", "delayed", "--agent", "index", "--limit", "2"]);
    expect(page.stdout.split("\n")).toHaveLength(4);
    const [, cursor] = /--cursor (\d+) for the next page/.exec(page.stderr) ?? [];
    const next = await rota(["tasks", "--cursor", cursor as string, "--json"]);
    expect(JSON.parse(next.stdout)).toMatchObject({ tasks: [{ payload: 0 }], count: 1, nextCursor: null });
    const all = await rota(["tasks", "--all", "--limit", "2", "--json"]);
    const counts = all.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).count);
    expect(counts).toEqual([2, 1]);
    const none = await rota(["tasks", "--state", "failed"]);
    expect([none.stdout, none.stderr]).toEqual(["", "There are no such tasks.\n"]);
  });

  test("ends quietly when the pipe is closed", async () => {
    const { server } = await withServer();
    const tasks = Array(5).fill({ payload: "x".repeat(100_000), runAt: "2100-01-01T00:00:00Z" });
    await server.ask("/tasks/batch", { json: { tasks } });
    const script = `"$0" "$1" tasks --all --json | head -c 10; echo " \${PIPESTATUS[0]}"`;
    const args = ["--norc", "-c", script, process.execPath, MAIN];
    const { stdout, stderr } = await promisify(execFile)("bash", args, {
      env: { ...process.env, ROTA_URL: server.url },
    });
    expect([stdout, stderr]).toEqual(['{"tasks":[ 0\n', ""]);
  });
});

describe("rota task, rota cancel, rota retry", () => {
  test("show all there is to know of one", async () => {
    const { rota, server, submit } = await withServer();
    await submit("--message", "hello", "--metadata", '{"user":42}', "--wait");
    const [task] = (await server.ask("/tasks")).body.tasks;
    const { stdout } = await rota(["task", task.taskId]);
    expect(stdout).toContain(`task        ${task.taskId}\nstate       done\nagent       index\n`);
    expect(stdout).toMatch(/^metadata {4}\{\n +"user": 42\n +\}$/m);
    expect(stdout).toMatch(/^result {6}hello$/m);
    expect(stdout).toMatch(/^ATTEMPT +STARTED +TOOK +OUTCOME +NODE +ERROR\n +1 .* done /m);
    expect(JSON.parse((await rota(["task", task.taskId, "--json"])).stdout)).toEqual(task);
  });

  test("end with 3 when there is none", async () => {
    const { rota } = await withServer();
    expect(await rota(["task", "tsk_unknown"])).toEqual({
      code: 3,
      stdout: "",
      stderr: 'error: task not found: "rota tasks" lists what there is\n',
    });
    expect(await rota(["workers", "drain", "wrk_unknown"])).toEqual({
      code: 3,
      stdout: "",
      stderr: 'error: worker not found: "rota workers" lists what there is\n',
    });
    expect(await rota(["task", "tsk_unknown", "--json"])).toEqual({
      code: 3,
      stdout: "",
      stderr: '{"code":"not_found","error":"task not found"}\n',
    });
  });

  test("do what can be done with several, say what cannot, and end with the first such", async () => {
    const { rota } = await withServer();
    const id = (await rota(submitLater)).stdout.trim();
    expect(await rota(["cancel", id, "tsk_unknown", id])).toEqual({
      code: 3,
      stdout: `${id} cancelled\n`,
      stderr: `error: tsk_unknown: task not found: "rota tasks" lists what there is\nerror: ${id}: task is already cancelled\n`,
    });
    const refused = { code: 2, stdout: "", stderr: "error: task is already cancelled\n" };
    expect(await rota(["cancel", id])).toEqual(refused);
    // It was cancelled before its time, and still waits for that.
    expect(await rota(["retry", id])).toEqual({ code: 0, stdout: `${id} delayed\n`, stderr: "" });
    expect(await rota(["retry", id, "--json"])).toMatchObject({ code: 2, stdout: "" });
  });

  test("show and cancel what a program of Rota submitted with its token", async () => {
    const { rota, server } = await withServer();
    const root = (await rota(submitLater)).stdout.trim();
    const alone = await rota(["task", root, "--tree"]);
    expect(alone.stdout).toMatch(new RegExp(`^${root} delayed index: later\\n$`));
    expect((await server.ask(`/tasks/${root}`)).body.createdBy).toMatchObject({
      ...{ via: "cli", client: expect.stringMatching(/^rota\//) },
    });
    expect((await rota(["task", root])).stdout).toMatch(/created by +via cli \(rota\//);
    expect((await rota(["cancel", root, "--tree"])).stdout).toBe(`${root} cancelled, 1 in all\n`);
  });

  test("act on all that fit, after a look at what that would be", async () => {
    const { rota } = await withServer();
    const ids = [(await rota(submitLater)).stdout.trim(), (await rota(submitLater)).stdout.trim()];
    const flags = ["--state", "delayed", "--agent", "index"];
    expect((await rota(["tasks", "cancel", ...flags, "--dry-run"])).stdout).toMatch(
      /^2 tasks match\n( {2}tsk_\w+ {2}index {2}delayed\n){2}$/,
    );
    expect((await rota(["tasks", "cancel", ...flags])).stdout).toMatch(/^blk_\w+ done: 2 of 2 cancelled\n$/);
    expect((await rota(["tasks", "retry", "--state", "cancelled"])).stdout).toMatch(
      / done: 2 of 2 retried\n$/,
    );
    await rota(["cancel", ids[0] ?? ""]);
    const deleted = (await rota(["tasks", "delete", "--state", "cancelled"])).stdout;
    expect(deleted).toMatch(/ done: 1 of 1 deleted\n$/);
    expect((await rota(["task", ids[0] ?? ""])).code).toBe(3);
    const id = deleted.split(" ")[0] ?? "";
    expect((await rota(["bulk", id, "--abort"])).stdout).toBe(`${id} done: 1 of 1 deleted\n`);
    expect(await rota(["tasks", "cancel"])).toMatchObject({ code: 2, stdout: "" });
  });

  test("bring dependants back with the task that they were cancelled because of", async () => {
    const { rota, server } = await withServer();
    const id = (await rota(submitLater)).stdout.trim();
    const { taskId } = (await server.ask("/tasks", { json: { payload: 1, dependsOn: [id] } })).body;
    await rota(["cancel", id]);
    expect(await rota(["retry", taskId])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`the task depends on ${id}, which was cancelled: `),
    });
    expect(await rota(["retry", id, "--dependants"])).toMatchObject({ code: 0, stdout: `${id} delayed\n` });
    expect((await server.ask(`/tasks/${taskId}`)).body.state).toBe("waiting_dependency");
  });
});

describe("rota nodes, events, waiting and task --logs", () => {
  test("show who runs tasks, what happened, why work waits and what was logged", async () => {
    const file = join(newFolder(), "rota.json");
    const command = [process.execPath, "-e", "console.error('reads'); console.error('writes')"];
    const agents = { talker: { executor: { type: "command", command } } };
    writeFileSync(file, JSON.stringify({ agents }));
    const { rota, submit } = await withServer({ file });
    expect((await rota(["nodes"])).stdout).toMatch(
      /^NODE .*\n\S+ +alive +\d+\.\d+\.\d+\S* +\S.* tasks 0\/4.*\n$/,
    );
    expect((await rota(["waiting"])).stdout).toBe("No tasks are waiting.\n");
    const id = await submit("--agent", "talker", "--message", "x");
    await rota(["submit", "--message", "later", "--run-at", "1h"]);
    expect((await rota(["waiting"])).stdout).toMatch(/^TASKS .*\n +1 +not_before\n1 in all\n$/);
    await eventually(
      async () => /reads\n.* info +writes\n$/.test((await rota(["task", id, "--logs"])).stdout),
      "the lines to be kept",
    );
    const json = JSON.parse((await rota(["task", id, "--logs", "--attempt", "1", "--json"])).stdout);
    expect(json).toMatchObject({
      attempt: 1,
      lines: [
        { n: 1, text: "reads" },
        { n: 2, text: "writes" },
      ],
    });
    const { stdout } = await rota(["events", "--task", id]);
    expect(stdout.trim().split("\n")).toHaveLength(3);
    const newest = JSON.parse((await rota(["events", "--limit", "1", "--json"])).stdout);
    expect(newest).toMatchObject({ count: 1, next: newest.events[0].seq });
    expect((await rota(["events", "--type", "task.failed"])).stdout).toBe("No stored event matches.\n");
  });
});

describe("rota stats and rota agents", () => {
  test("show the queue and what each agent did", async () => {
    const { rota, server, submit } = await withServer();
    await submit("--message", "hello", "--wait");
    const { stdout } = await rota(["stats"]);
    expect(stdout).toMatch(/^queued +0 of 1000\nrunning +0 /);
    expect(stdout).toMatch(
      /^counted +by this process since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \((?:now|\d+ s ago)\):\nsubmitted +1$/m,
    );
    const { startedAt } = (await server.ask("/health")).body;
    expect(Date.now() - Date.parse(startedAt)).toBeLessThan(60_000);
    expect(stdout).toMatch(/^index +0 +1 +1 +0 +0 +0$/m);
    const stats = JSON.parse((await rota(["stats", "--json"])).stdout);
    expect(stats).toEqual((await server.ask("/scheduler/stats")).body);
  });

  test("show what happened over time", async () => {
    const { rota, submit } = await withServer();
    await submit("--message", "hello", "--wait");
    const series = () => rota(["stats", "--series", "submitted,done", "--by", "lane"]);
    await expect
      .poll(async () => (await series()).stdout, { timeout: 20_000 })
      .toMatch(/^main +done +1 +1 /m);
    const json = await rota(["stats", "--series", "--step", "3600", "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({
      step: 3600,
      series: [{ key: "all", metric: "submitted" }, {}, {}, {}],
    });
    expect(await rota(["stats", "--by", "lane"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--by needs --series"),
    });
    expect((await rota(["stats", "--series", "dnoe"])).stderr).toContain("did you mean `done`?");
  });

  test("find the server where --url says, also without http://, and start a task later with --run-at 10m", async () => {
    const { server } = await withServer();
    const { host } = new URL(server.url);
    const { stdout, code } = await run(["submit", "--message", "hello", "--run-at", "10m", "--url", host]);
    expect(code).toBe(0);
    const { body } = await server.ask(`/tasks/${stdout.trim()}`);
    expect(body.state).toBe("delayed");
    expect(Math.abs(Date.parse(body.runAt) - Date.now() - 600_000)).toBeLessThan(60_000);
  });

  test("list, create, show, change and delete agents", async () => {
    const { rota } = await withServer();
    const create = ["agents", "create", "team/a", "--executor", '{"type":"echo"}', "--max-inflight", "2"];
    create.push("--context-window", "8000");
    expect((await rota(create)).stdout).toMatch(/^agent +team\/a\nfrom +stored\n/);
    expect((await rota(["agents"])).stdout).toMatch(
      /^AGENT .*\nindex +built-in *\nteam\/a +stored +2 +echo\n$/,
    );
    const update = ["agents", "update", "team/a", "--lane", "main", "--unset", "maxInflight", "--json"];
    expect(JSON.parse((await rota(update)).stdout)).toEqual({
      id: "team/a",
      executor: { type: "echo" },
      lane: "main",
      contextWindow: 8_000,
      source: "stored",
    });
    for (const name of ["get", "show"]) {
      expect((await rota(["agents", name, "team/a"])).stdout).toMatch(/^agent +team\/a\nfrom +stored\n/);
    }
    expect(JSON.parse((await rota(["agents", "list", "--json"])).stdout).count).toBe(2);
    const first = JSON.parse((await rota(["agents", "list", "--limit", "1", "--json"])).stdout);
    expect(first).toMatchObject({ agents: [{ id: "index" }], count: 1, nextCursor: expect.any(String) });
    const next = await rota(["agents", "list", "--cursor", first.nextCursor, "--json"]);
    expect(JSON.parse(next.stdout)).toMatchObject({ agents: [{ id: "team/a" }], nextCursor: null });
    expect(await rota(create)).toMatchObject({ code: 2, stdout: "" });
    expect(await rota(["agents", "delete", "team/a"])).toMatchObject({ code: 0, stdout: "team/a deleted\n" });
    expect(await rota(["agents", "get", "team/a"])).toMatchObject({ code: 3, stdout: "" });
  });
});

describe("rota lanes", () => {
  test("list, put and clear lanes", async () => {
    const { rota, server } = await withServer();
    const put = ["lanes", "put", "team/crawl", "--concurrency", "0", "--total", "3"];
    expect((await rota(put)).stdout).toMatch(/^LANE .*\nteam\/crawl +0 +3 +0 +0\n$/);
    await server.ask("/tasks", { json: { message: "x", lane: "team/crawl" } });
    expect((await rota(["lanes"])).stdout).toMatch(
      /^LANE +CONCURRENCY +TOTAL +RUNNING +WAITING +OLDEST WAITS\ntasks +4 +20 +0 +0\nmain +30 +- +0 +0\n(?:.*\n)+team\/crawl +0 +3 +0 +1 +\d.*s\n$/,
    );
    const { lanes } = JSON.parse((await rota(["lanes", "list", "--json"])).stdout);
    expect(lanes.at(-1)).toMatchObject({ name: "team/crawl", concurrency: 0, total: 3, waiting: 1 });
    expect(await rota(["lanes", "clear", "team/crawl"])).toEqual({
      code: 0,
      stdout: "1 cancelled\n",
      stderr: "",
    });
    expect((await rota(["lanes", "clear", "team/crawl", "--json"])).stdout).toBe('{"cancelled":0}\n');
    const unbound = await rota(["lanes", "put", "team/crawl", "--concurrency", "5", "--json"]);
    expect(JSON.parse(unbound.stdout)).toMatchObject({ concurrency: 5, total: null });
  });

  test("say what is wrong", async () => {
    const { rota } = await withServer({ environment: { ROTA_SCHEDULER_WORKER_COUNT: "2" } });
    expect(await rota(["lanes", "clear", "nowhere"])).toEqual({
      code: 3,
      stdout: "",
      stderr: 'error: lane not found: "rota lanes" lists what there is\n',
    });
    expect(await rota(["lanes", "put", "tasks", "--concurrency", "5"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^error: the lane "tasks" is described by `scheduler/),
    });
    expect(await rota(["lanes", "put", "a", "--concurrency", "many"])).toMatchObject({
      code: 2,
      stderr: 'error: `concurrency` must be an integer from 0 to 10000000, not "many"\n',
    });
    expect((await rota(["lanes", "put", "a"])).stderr).toContain("required option '--concurrency <number>'");
  });
});

describe("rota deliveries", () => {
  test("lists the outcome of callbacks, shows one, and sends it again", async () => {
    const bodies: string[] = [];
    const url = await serve((_request, response, body) => {
      bodies.push(body);
      response.end();
    });
    const folder = newFolder();
    writeFileSync(join(folder, "rota.config.json"), '{"webhooks": {"allow": ["127.0.0.1"]}}');
    const server = await startServer({ folder });
    const rota = (args: readonly string[]) => run(args, { environment: { ROTA_URL: server.url } });
    await rota(["submit", "--message", "hello", "--callback", `${url}/hook`, "--wait"]);
    const delivered = async () => JSON.parse((await rota(["deliveries", "--json"])).stdout).deliveries[0];
    await eventually(async () => (await delivered())?.status === "delivered", "the callback");
    const { deliveryId, taskId } = await delivered();
    expect((await rota(["deliveries", "--task", taskId])).stdout).toMatch(
      new RegExp(`^DELIVERY .*\n${deliveryId} +delivered +1 .* ${taskId} +${url}/hook\n$`),
    );
    for (const name of ["get", "show"]) {
      expect((await rota(["deliveries", name, deliveryId])).stdout).toMatch(/^status +delivered$/m);
    }
    expect(await rota(["deliveries", "resend", deliveryId, "dlv_unknown"])).toMatchObject({
      code: 3,
      stdout: `${deliveryId} pending\n`,
      stderr: 'error: dlv_unknown: delivery not found: "rota deliveries" lists what there is\n',
    });
    await eventually(() => bodies.length === 2, "the callback once more");
    expect((await rota(["deliveries", "--status", "failed"])).stderr).toBe("There are no such deliveries.\n");

    const batch = { batchCallbackUrl: `${url}/batch`, tasks: [{ message: "hello" }] };
    const { batchId } = (await server.ask("/tasks/batch", { json: batch })).body;
    await eventually(() => bodies.length === 3, "the callback of the batch");
    const delivery = await delivered();
    expect((await rota(["deliveries"])).stdout).toMatch(new RegExp(` ${batchId} +${url}/batch\n`));
    expect((await rota(["deliveries", "get", delivery.deliveryId])).stdout).toMatch(
      new RegExp(`^event +batch.completed\nbatch +${batchId}\nurl `, "m"),
    );
  });
});

describe("rota watch", () => {
  test("writes a line for each event when stdout is no terminal, until it is stopped", async () => {
    const { start, submit } = await withServer();
    const { taskId } = JSON.parse(await submit("--message", "hello", "--wait", "--json"));
    const process = start(["watch", "--after", "0"]);
    await eventually(() => process.stdout().includes("task.completed"), "the events");
    const lines = process.stdout().trim().split("\n");
    expect(lines.map((line) => line.replace(/^\S+Z {2}/, ""))).toEqual([
      `task.created  ${taskId}  index`,
      `task.started  ${taskId}  index`,
      `task.completed  ${taskId}  index  "hello"`,
    ]);
    process.kill("SIGINT");
    expect(await process.ended).toEqual({ code: 0, signal: null });
  });

  test("with --json writes events as they are, only of the agent asked for", async () => {
    const { start, submit } = await withServer({ environment: FAIL_AT_ONCE });
    await submit("--agent", "nobody", "--message", "x", "--wait");
    await submit("--message", "hello", "--wait");
    const process = start(["watch", "--json", "--after", "0", "--agent", "index"]);
    await eventually(() => process.stdout().includes("task.completed"), "the events");
    const events = process
      .stdout()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events.map(({ seq, type, agentId }) => [seq, type, agentId])).toEqual([
      [3, "task.created", "index"],
      [4, "task.started", "index"],
      [5, "task.completed", "index"],
    ]);
    process.kill("SIGTERM");
    expect(await process.ended).toEqual({ code: 143, signal: null });
  });
});

describe("without a server", () => {
  test.each([
    [["tasks"]],
    [["submit", "--message", "x"]],
    [["submit", "--message", "x", "--wait"]],
    [["schedule", "hourly: x"]],
    [["doctor"]],
    [["watch"]],
    [["watch", "--notifications"]],
  ])("rota %s says so in a sentence, with what to do, and ends with 4", async (args) => {
    const { code, stdout, stderr } = await run([...args, "--url", await freeUrl()]);
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toMatch(
      /^error: cannot reach Rota at http:\/\/127\.0\.0\.1:\d+: .*\nIs it running\? Start it with "rota serve", or .*\n$/,
    );
  });

  test("but with another one in its place, that is said", async () => {
    const url = await serve((_request, response) => response.end("<html>It works!</html>"));
    const { code, stderr } = await run(["stats", "--url", url]);
    expect(code).toBe(4);
    expect(stderr).toBe(
      `error: ${url} does not respond as Rota does: status 200, "<html>It works!</html>"\n`,
    );
  });

  test.each([
    [["--help"], /Server:\n +serve .*Tasks and sessions:.*Monitoring:.*Exit codes:\n +0 /s],
    [["help", "submit"], /^Usage: rota submit .*--wait \[seconds\].*Common options:\n +--url/s],
    [["tasks", "--help"], /^Usage: rota tasks /],
  ])("rota %s helps", async (args, answer) => {
    const { stdout, ...ended } = await run(args);
    expect(ended).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(answer);
  });

  test.each([
    [[], /^Usage: rota /],
    [["taks"], /^error: unknown command 'taks'\n\(Did you mean one of task, tasks\?\)\nRun "rota --help"/],
    [
      ["task"],
      /^error: missing required argument 'id'\nRun "rota task --help" to see the commands and options\.\n$/,
    ],
    [
      ["submit", "hello"],
      /^error: "hello" belongs to no option: write the text after one, and in quotes, as in --message "hello world"\n$/,
    ],
    [
      ["submit", "--message", "hello", "world"],
      /^error: "world" belongs to no option: write the text after /,
    ],
    [
      ["tasks", "one"],
      /^error: "rota tasks" has no command one: it has cancel, retry, delete\nTo show one: rota task one\nRun "rota tasks --help"/,
    ],
    [
      ["lanes", "one"],
      /^error: "rota lanes" has no command one: it has list, put, clear\nRun "rota lanes --help"/,
    ],
    [["agents", "one"], /^error: "rota agents" has no command one: .*\nTo show one: rota agents show one\n/],
    [
      ["schedules", "puase", "1"],
      /^error: "rota schedules" has no command puase: did you mean pause\?\nTo show one: rota schedules show puase\n/,
    ],
    [
      ["tasks", "cancel"],
      /^error: select the tasks to cancel, for instance with --agent NAME or --batch ID\n$/,
    ],
    [
      ["tasks", "--from", "foo"],
      /^error: --from must be a span back from now like 2h, or a time like .*, not foo\n$/,
    ],
    [
      ["agents", "create", "a", "--executor", "echo"],
      /^error: --executor must be JSON, like '{"type": "echo"}'/,
    ],
    [
      ["stats", "--url", "nonsense"],
      /^error: `url` must be where Rota is, like "http:\/\/127\.0\.0\.1:7682"\n$/,
    ],
    [["watch", "--after", "all"], /^error: --after must be the number of an event/],
  ])("rota %s is refused with 2", async (args, sentence) => {
    const { code, stdout, stderr } = await run(args);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(sentence);
  });
});

/** A URL where no server listens. */
async function freeUrl(): Promise<string> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  listener.close();
  return `http://127.0.0.1:${port}`;
}
