import { describe, expect, test } from "vitest";
import { serve } from "../support/http-server.ts";
import { run, withServer } from "./commands.ts";
import { eventually } from "./server-process.ts";

/** A server, and commands, and a way to wait until so many runs have ended. */
async function withSchedules() {
  const { server, ...rest } = await withServer();
  const ended = (runs: number) =>
    eventually(async () => {
      const answer = await server.ask("/v1/runs");
      const over = answer.body.runs.filter((each: { status: string }) => each.status !== "running");
      return over.length >= runs;
    }, `${runs} runs`);
  return { server, ended, ...rest };
}

describe("rota schedule", () => {
  test("makes a schedule of a text, and says on a line what was understood and when it is due", async () => {
    const { rota, server } = await withServer();
    expect(await rota(["schedule", "every monday at 09:00: summarise the week"])).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^#1 every Mon at 09:00, next in \d+ \w+, Mon .*09:00 → index\n$/),
      stderr: "",
    });
    const words = ["in", "2", "hours:", "look", "at:", "it", "--paused", "--tz", "Asia/Kathmandu"];
    expect((await rota(["schedule", ...words])).stdout).toBe("#2 in 2 hours, paused → index\n");
    expect((await server.ask("/v1/schedules/2")).body.scheduled_task).toMatchObject({
      message: "look at: it",
      status: "paused",
      tz: "Asia/Kathmandu",
    });
  });

  test("takes phrase and message as two arguments, and everything else as flags", async () => {
    const { rota } = await withServer();
    const flags =
      "--name Milk --session home --conversation c1 --overlap queue --catch-up all --useful-for 2h --timeout 30s --retries 1 --delete-after-run";
    const { stdout } = await rota(["schedule", "in 1 hour", "note: buy milk", ...flags.split(" "), "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({
      normalized: "in 1 hour",
      scheduled_task: {
        id: 1,
        message: "note: buy milk",
        name: "Milk",
        session_key: "home",
        conversation_id: "c1",
        overlap: "queue",
        catch_up: "all",
        useful_for: 7_200,
        timeout: 30_000,
        retry: { max_retries: 1 },
        delete_after_run: true,
      },
    });
  });

  test("says what is wrong, with what to write instead, and makes nothing", async () => {
    const { rota, server } = await withServer();
    for (const [args, code, sentence] of [
      [["in 1 hour"], 2, /^error: write a colon and a space .*; or write them as two arguments\n$/],
      [["list"], 2, /^error: .* to list them: rota schedules\n$/],
      [
        ["every mondy: x"],
        2,
        /^error: `schedule` "every mondy" .*"monday"\?\nAccepted forms:\n {2}in N minutes/,
      ],
      // Its form is right: the list of forms would hide the reason.
      [["on 2020-01-01: x"], 2, /^error: `schedule` "on 2020-01-01" is not possible: that is in the past\n$/],
      [["hourly: x", "--agent", "nobody"], 3, /^error: agent "nobody" not found/],
      [
        ["hourly: x", "--useful-for", "soon"],
        2,
        /^error: `useful_for` must be .* \(--useful-for: also a span like 2h\)\n$/,
      ],
      [["hourly: x", "--retries", "many"], 2, /^error: `retry.max_retries` .* \(--retries\)\n$/],
      [[], 2, /^error: missing required argument 'text'/],
    ] as const) {
      const answer = await rota(["schedule", ...args]);
      expect([answer.code, answer.stdout]).toEqual([code, ""]);
      expect(answer.stderr).toMatch(sentence);
    }
    const { stderr } = await rota(["schedule", "every mondy", "x", "--json"]);
    expect(JSON.parse(stderr)).toMatchObject({ code: "invalid_field", details: { field: "schedule" } });
    expect((await server.ask("/v1/schedules")).body.count).toBe(0);
  });
});

describe("rota schedule with what its runs are, and when it ends", () => {
  test("makes it so, shows it, changes it and takes it back", async () => {
    const { rota, server } = await withServer();
    expect(
      (
        await rota([
          ...[
            "schedule",
            "every day at 07:00",
            "--instruction",
            "sum up",
            "--lane",
            "team",
            "--priority",
            "high",
          ],
          ...["--metadata", '{"a":1}', "--max-runs", "30", "--until", "400d", "--pause-after-failures", "3"],
        ])
      ).stdout,
    ).toMatch(/^#1 every day at 07:00, next .* → index\n$/);
    const shown = async () => (await server.ask("/v1/schedules/1")).body.scheduled_task;
    expect(await shown()).toMatchObject({
      message: null,
      instruction: "sum up",
      lane: "team",
      priority: 1,
      metadata: { a: 1 },
      max_runs: 30,
      until: expect.any(Number),
      pause_after_failures: 3,
    });
    const { stdout } = await rota(["schedules", "show", "1"]);
    for (const line of [
      /^instruction +sum up$/m,
      /^lane +team$/m,
      /^priority +1$/m,
      /^metadata +\{"a":1\}$/m,
      /^at most +30 runs$/m,
      /^until +\S/m,
      /^pauses after +3 failed runs in a row$/m,
    ])
      expect(stdout).toMatch(line);
    const unset = ["lane", "priority", "metadata", "max-runs", "until", "pause-after-failures"];
    await rota(["schedules", "edit", "1", "--payload", "[1]", "--unset", ...unset]);
    const edited = await shown();
    expect(edited).toMatchObject({ payload: [1] });
    for (const field of ["instruction", "lane", "priority", "metadata", "max_runs", "until"])
      expect(edited).not.toHaveProperty(field);
    expect((await rota(["schedules"])).stdout).toContain("[1]");
    expect(await rota(["schedule", "hourly: x", "--max-runs", "0"])).toMatchObject({
      stderr: expect.stringMatching(/^error: .* must be an integer from 1 .*\(--max-runs\)$/m),
    });
  });
});

describe("rota schedules", () => {
  test("lists, shows and counts schedules", async () => {
    const { rota } = await withServer();
    expect(await rota(["schedules"])).toMatchObject({
      code: 0,
      stdout: "",
      stderr: expect.stringMatching(/^There are no schedules\. Make one: rota schedule /),
    });
    await rota(["schedule", "every 2 weeks on tue: report"]);
    await rota(["schedule", "in 1 hour: look", "--paused"]);
    const { stdout } = await rota(["schedules"]);
    expect(stdout).toMatch(
      /^ID +STATUS +NEXT +SCHEDULE +AGENT +LAST RUN +MESSAGE\n 2 +paused +in 1 hour +index +look\n 1 +active +in \d+ .*, Tue .*09:00 +every 2 weeks on tue +index +report\n$/,
    );
    expect((await rota(["schedules", "--status", "paused", "--json"])).stdout).toMatch(
      /^\{"schedules":\[.*"count":1,"next_cursor":null\}\n$/,
    );
    const first = await rota(["schedules", "--limit", "1"]);
    expect(first.stdout).toMatch(/^ID .*\n 2 .*\n$/);
    expect(first.stderr).toBe(
      "There are more schedules: add --all, or --cursor start-2 for the next page.\n",
    );
    expect((await rota(["schedules", "--cursor", "start-2"])).stdout).toMatch(/^ID .*\n 1 .*\n$/);
    expect((await rota(["schedules", "--limit", "1", "--all"])).stdout).toMatch(/^ID .*\n 2 .*\n 1 .*\n$/);
    expect((await rota(["schedules", "--agent", "other"])).stderr).toBe("There are no such schedules.\n");
    expect((await rota(["schedules", "--status", "failed"])).stderr).toBe("There are no such schedules.\n");
    expect((await rota(["schedules", "--status", "bad"])).code).toBe(2);

    const shown = await rota(["schedules", "show", "1"]);
    expect(shown.stdout).toMatch(
      /^schedule +1\nstatus +active\nwhen +every 2 weeks on tue \(every 2 weeks on Tue at 09:00\)\n/,
    );
    const moments = [...shown.stdout.matchAll(/^(\d{4}-\S+) {2}in \d+ \w+, Tue/gm)].map(([, moment]) =>
      Date.parse(moment as string),
    );
    expect(moments).toHaveLength(5);
    const days = moments
      .slice(1)
      .map((moment, index) => Math.round((moment - (moments[index] as number)) / 86_400_000));
    expect(days).toEqual([14, 14, 14, 14]);
    expect(JSON.parse((await rota(["schedules", "get", "#2", "--json"])).stdout)).toMatchObject({
      scheduled_task: { id: 2, status: "paused" },
    });

    expect((await rota(["schedules", "status"])).stdout).toMatch(
      /^active +1\npaused +1\nrunning +0 runs\nnext +in \d+ \w+, Tue .*\n$/,
    );
    expect((await rota(["schedules", "upcoming", "--to", "60d", "--limit", "2"])).stdout).toMatch(
      /^DUE .*\n(in \d+ \w+, Tue .*\n){2}There are more: .*\n$/,
    );
  });

  test("pauses, resumes and deletes several, and does what can be done", async () => {
    const { rota } = await withServer();
    for (const message of ["a", "b"]) await rota(["schedule", "hourly", message]);
    expect(await rota(["schedules", "pause", "1", "99", "two", "2"])).toEqual({
      code: 3,
      stdout: "#1 paused\n#2 paused\n",
      stderr: expect.stringMatching(
        /^error: 99: schedule not found: .*\nerror: two: write the number of the schedule/,
      ),
    });
    expect((await rota(["schedules", "resume", "1", "2"])).stdout).toMatch(
      /^#1 active, next in .*\n#2 active, next in .*\n$/,
    );
    expect((await rota(["schedules", "delete", "1"])).stdout).toBe("#1 deleted\n");
    expect((await rota(["schedules", "cancel", "2", "--json"])).stdout).toBe('{"id":2,"deleted":true}\n');
    expect(await rota(["schedules", "show", "1"])).toMatchObject({
      code: 3,
      stderr: 'error: schedule not found: "rota schedules" lists what there is\n',
    });
    expect((await rota(["schedules", "show", "one"])).code).toBe(2);
  });

  test("changes one, and refuses to change nothing", async () => {
    const { rota } = await withServer();
    await rota(["schedule", "in 1 hour", "look", "--name", "Look", "--delete-after-run"]);
    const edit = (...args: string[]) => rota(["schedules", "edit", "1", ...args]);
    expect(await edit()).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("name a setting to change"),
    });
    expect((await edit("--unset", "agent")).stderr).toMatch(/^error: --unset takes name, .* not agent\n$/);
    expect((await edit("--schedule", "hourly")).stderr).toContain("(--no-delete-after-run)");
    const { stdout } = await edit(
      "--schedule",
      "every 15 min",
      "--no-delete-after-run",
      "--unset",
      "name",
      "--message",
      "see",
    );
    expect(stdout).toMatch(/^schedule +1\nstatus +active\nwhen +every 15 min \(every 15 minutes\)\n/);
    expect(stdout).toMatch(/^message +see$/m);
    expect(stdout).not.toMatch(/^name/m);
    const asJson = await edit("--useful-for", "90m", "--json");
    expect(JSON.parse(asJson.stdout).scheduled_task).toMatchObject({
      useful_for: 5_400,
      message: "see",
      name: null,
    });
  });

  test("preview shows when a schedule would be due, in words or as the API does", async () => {
    const { rota } = await withServer();
    const { code, stdout, stderr } = await rota([
      ...["schedules", "preview", "every monday at 09:00"],
      ...["--tz", "Asia/Kathmandu", "--count", "2"],
    ]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(
      /^every Mon at 09:00 \(recurring\)\n\nTIME +DUE\n(?:\d{4}-\d\d-\d\dT09:00:00\+05:45 {2}in \d+ \w+, Mon .*09:00\n){2}$/,
    );
    const asJson = await rota(["schedules", "preview", "in", "2", "hours", "--json"]);
    expect(JSON.parse(asJson.stdout)).toMatchObject({
      normalized: "in 2 hours",
      kind: "once",
      next: [expect.stringMatching(/[+-]\d\d:\d\d$/)],
      notes: [],
    });
  });

  test("preview shows what would come of a schedule that is made some other time", async () => {
    const { rota } = await withServer();
    const preview = async (from: string) => {
      const { stdout } = await rota([
        "schedules",
        "preview",
        "in 1 day",
        "--tz",
        "UTC",
        "--json",
        "--from",
        from,
      ]);
      return Date.parse(JSON.parse(stdout).next[0]);
    };
    expect(await preview("2030-03-30T00:00:00Z")).toBe(Date.UTC(2030, 2, 31));
    expect(await preview("2d")).toBeGreaterThan((await preview("1d")) + 23 * 60 * 60 * 1_000);
    const past = await rota([
      "schedules",
      "preview",
      "in 1 day",
      "--tz",
      "UTC",
      "--from",
      "2020-01-01T00:00:00Z",
    ]);
    expect(past.stdout).toMatch(/2020-01-02T00:00:00\+00:00 {2}\d+ d ago, Thu 2020-01-02 00:00\n$/);
    expect(await rota(["schedules", "preview", "hourly", "--from", "soon"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("`from` must be"),
    });
  });

  test("preview says what is wrong, and what could be said instead", async () => {
    const { rota } = await withServer();
    const preview = (...args: string[]) => rota(["schedules", "preview", ...args]);
    expect(await preview("every mondy")).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(
        /^error: `schedule` "every mondy" .*\nAccepted forms:\n {2}in N minutes.*\n(?: {2}.*\n)+$/,
      ),
    });
    const { stderr } = await preview("every mondy", "--json");
    expect(JSON.parse(stderr)).toMatchObject({
      error: expect.not.stringContaining("\n"),
      details: { field: "schedule", accepted: expect.arrayContaining(["at HH:MM"]) },
    });
    expect(await preview("hourly", "--count", "many")).toMatchObject({
      code: 2,
      stderr: 'error: `count` must be an integer from 1 to 1000, not "many"\n',
    });
    expect(await preview("hourly", "--tz", "Berlin")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("did you mean Europe/Berlin?"),
    });
    expect(await preview("hourly", "--url", "http://127.0.0.1:1")).toMatchObject({ code: 4, stdout: "" });
  });
});

describe("rota schedules run and rota runs", () => {
  test("run a schedule out of turn, and show its outcome", async () => {
    const { rota, ended } = await withSchedules();
    await rota(["schedule", "every monday at 09:00: hello"]);
    expect((await rota(["schedules", "run", "1"])).stdout).toBe('#1 started: see "rota runs show 1"\n');
    await ended(1);
    expect((await rota(["schedules", "run", "1", "--if-due"])).stdout).toBe(
      "#1 did not run: it is not due\n",
    );
    expect(await rota(["schedules", "run", "9"])).toMatchObject({
      code: 3,
      stderr: 'error: schedule not found: "rota schedules" lists what there is\n',
    });

    expect((await rota(["runs"])).stdout).toMatch(
      /^RUN +SCHEDULE +STATUS +AGENT +DUE +TOOK +OUTCOME\n +1 +1 +succeeded +index +.*(?:ago|now) +\S.* +hello\n$/,
    );
    expect((await rota(["runs", "show", "1"])).stdout).toMatch(
      /^run +1\nschedule +1\nstatus +succeeded\nagent +index\ndue .*\nfired .*\nended .*\ntook .*\nattempts +1\ntask +tsk_\w+\nrequest +\S+\nresult +hello\n$/,
    );
    expect(JSON.parse((await rota(["runs", "get", "1", "--json"])).stdout)).toMatchObject({
      run: { id: 1, task_id: 1, status: "succeeded" },
    });
    expect((await rota(["tasks", "--schedule", "1"])).stdout).toMatch(/\ntsk_\w+ +done +index .* hello\n$/);
  });

  test("list runs by schedule, status and time, page after page", async () => {
    const { rota, server, ended } = await withSchedules();
    for (const message of ["a", "b"]) await rota(["schedule", "hourly", message]);
    for (const [before, id] of [1, 2, 2].entries()) {
      await server.ask(`/v1/schedules/${id}/run`, { method: "POST", json: {} });
      await ended(before + 1);
    }
    const ids = async (...args: string[]) => {
      const { stdout } = await rota(["runs", ...args, "--json"]);
      return stdout
        .trim()
        .split("\n")
        .map((page) => JSON.parse(page).runs.map(({ id }: { id: number }) => id));
    };
    expect(await ids()).toEqual([[3, 2, 1]]);
    expect(await ids("--schedule", "2", "--status", "succeeded", "--since", "1h")).toEqual([[3, 2]]);
    expect(await ids("--since", "2100-01-01T00:00:00Z")).toEqual([[]]);
    expect(await ids("--all", "--limit", "2")).toEqual([[3, 2], [1]]);
    expect(await ids("--all")).toEqual([[3, 2, 1]]);
    const page = await rota(["runs", "--limit", "2"]);
    expect(page.stderr).toMatch(/^There are more runs: add --all, or --cursor \S+ for the next page\.\n$/);
    expect((await rota(["runs", "--status", "failed"])).stderr).toBe("There are no such runs.\n");
  });

  test("say what is wrong", async () => {
    const { rota } = await withServer();
    for (const [args, code, sentence] of [
      [["--schedule", "9"], 3, 'error: schedule not found: "rota schedules" lists what there is\n'],
      [["show", "9"], 3, 'error: run not found: "rota runs" lists what there is\n'],
      [["show", "x"], 2, 'error: write the number of the run, which "rota runs" lists, not x\n'],
      [["--since", "yesterday"], 2, expect.stringMatching(/^error: --since must be a span back from now/)],
      [["--status", "done"], 2, expect.stringMatching(/^error: `status` must be running, succeeded/)],
    ] as const) {
      expect(await rota(["runs", ...args])).toEqual({ code, stdout: "", stderr: sentence });
    }
  });

  test("watch --notifications writes a line for what schedules do", async () => {
    const { rota, start, ended } = await withSchedules();
    for (const message of ["a", "b"]) await rota(["schedule", "hourly", message]);
    for (const id of ["1", "2"]) await rota(["schedules", "run", id]);
    await ended(2);
    const process = start(["watch", "--notifications", "--after", "0", "--schedule", "2"]);
    await eventually(() => process.stdout().includes("run.completed"), "the notifications");
    const lines = process.stdout().trim().split("\n");
    expect(lines.map((line) => line.replace(/^\S+Z {2}/, ""))).toEqual([
      "run.started  #2  run 2  index",
      "run.completed  #2  run 2  index  b",
    ]);
    process.kill("SIGINT");
    expect(await process.ended).toEqual({ code: 0, signal: null });
    expect(await rota(["watch", "--notifications", "--agent", "index"])).toMatchObject({
      code: 2,
      stdout: "",
    });
  });
});

describe("rota doctor", () => {
  test("shows each check, and ends with 0 while nothing is wrong", async () => {
    const { rota, ended } = await withSchedules();
    await rota(["schedule", "hourly: look"]);
    await rota(["schedules", "run", "1"]);
    await ended(1);
    const { code, stdout, stderr } = await rota(["doctor"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^(?:✓ \w+ +[A-Z].*\.\n)+$/);
    expect(stdout).toMatch(/^✓ schedules +Every due time has its run: \d+ since/m);
    expect(JSON.parse((await rota(["doctor", "--json"])).stdout)).toMatchObject({ ok: true });
  });

  test("ends with 1 when something is wrong, and says what", async () => {
    const report = {
      ok: false,
      checks: [{ name: "clock", ok: false, summary: "The clocks disagree.", findings: ["By 3 s."] }],
    };
    const url = await serve((_request, response) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(report));
    });
    expect(await run(["doctor", "--url", url])).toEqual({
      code: 1,
      stdout: "✗ clock  The clocks disagree.\n         - By 3 s.\n",
      stderr: "",
    });
    expect(await run(["doctor", "--json", "--url", url])).toMatchObject({
      code: 1,
      stdout: `${JSON.stringify(report)}\n`,
    });
  });
});
