import { describe, expect, test } from "vitest";
import { openTestRota, type TestRotaParams } from "../../../test/support/rota.ts";
import { asSharedStorage, away, openMemory } from "../../../test/support/storages.ts";
import type { Executor } from "../../executors/executor.ts";
import type { Rota } from "../../interface/rota.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { Latch, until } from "../../testing/signals.ts";

const LOOK = "/schedule in 1 hour: look again";

/** A Rota with an agent `a` that returns this and may write writs. */
async function open(executor: Executor, params: TestRotaParams = {}) {
  const opened = await openTestRota(params);
  const { rota } = opened;
  rota.agent("a", { writs: true }, executor);
  await rota.start();
  const ask = async (message = "do it") => {
    const { taskId } = await rota.tasks.submit({ agentId: "a", message });
    return rota.tasks.wait(taskId);
  };
  return { ...opened, ask };
}

const repeat: Executor = (task) => task.message;

async function schedules(rota: Rota) {
  return (await rota.schedules.list()).schedules;
}

/** The lines of a result that say what a writ did. */
function replies(result: unknown): string[] {
  return String(result)
    .split("\n")
    .filter((line) => /^(OK|ERR|#|\(none\))/.test(line));
}

describe("the writs in a result", () => {
  test("are carried out, and a text gets their blocks after an empty line", async () => {
    const { rota, ask } = await open(repeat);
    const { result, state } = await ask(`Sure.\n${LOOK}\nDone.\n/schedule list`);
    expect(state).toBe("done");
    const [answer, blocks] = String(result).split("\n\n");
    expect(answer).toBe(`Sure.\n${LOOK}\nDone.\n/schedule list`);
    expect(blocks?.split("\n")).toEqual([
      "[/schedule create in 1 hour: look again]",
      expect.stringMatching(/^OK: scheduled #1 in 1 hour \(.*\) → a$/),
      "  message: look again",
      "[END SCHEDULE]",
      "[/schedule list]",
      expect.stringMatching(/^#1 active in 1 hour, next .* → a: look again$/),
      "[END SCHEDULE]",
    ]);
    expect(await schedules(rota)).toMatchObject([{ id: 1, agent_id: "a", message: "look again" }]);
  });

  test("are found in the texts of an object, which gets their blocks as `writs`", async () => {
    const { rota, ask } = await open(() => ({ text: `ok\n${LOOK}`, n: 1, more: { text: LOOK }, note: "x" }));
    expect((await ask()).result).toEqual({
      text: `ok\n${LOOK}`,
      n: 1,
      more: { text: LOOK },
      note: "x",
      writs: [expect.stringMatching(/OK: scheduled #1 .*\[END SCHEDULE\]$/s)],
    });
    expect(await schedules(rota)).toHaveLength(1);
  });

  test.each<[string, unknown]>([
    ["nothing", undefined],
    ["a number", 5],
    ["a list", [LOOK]],
    ["an object without any", { text: "no /schedule list" }],
    ["a text without any", "see /schedule list"],
    ["a text that quotes one", `Write:\n\`\`\`\n${LOOK}\n\`\`\``],
  ])("are none in %s, which stays as it is", async (_what, answer) => {
    const { rota, ask } = await open(() => answer);
    expect((await ask()).result).toEqual(answer ?? null);
    expect(await schedules(rota)).toEqual([]);
  });

  test("are refused, and not passed over, from an agent that may not write any", async () => {
    const { rota } = await openTestRota({ options: { executors: { message: repeat } } });
    rota.agent("plain", repeat);
    rota.agent("forbidden", { writs: false }, repeat);
    rota.agent("object", (task) => ({ text: task.message, n: 1 }));
    await rota.start();
    const ask = async (agentId: string, message = LOOK) => {
      const { taskId } = await rota.tasks.submit({ agentId, message });
      return (await rota.tasks.wait(taskId)).result;
    };
    const block = (agent: string) =>
      [
        "[/schedule create in 1 hour: look again]",
        `ERR: agent "${agent}" is not allowed to schedule work: set \`writs: true\` on the agent`,
        "[END SCHEDULE]",
      ].join("\n");
    for (const agentId of ["plain", "forbidden", "index", "unlisted"]) {
      expect(await ask(agentId)).toBe(`${LOOK}\n\n${block(agentId)}`);
    }
    expect(await ask("object")).toEqual({ text: LOOK, n: 1, writs: [block("object")] });
    expect(replies(await ask("plain", `${LOOK}\n`.repeat(9)))).toHaveLength(5);
    for (const message of ["see /schedule list", `\`\`\`\n${LOOK}\n\`\`\``]) {
      expect(await ask("plain", message)).toBe(message);
    }
    expect(await schedules(rota)).toEqual([]);
  });

  test("keep the session and the conversation that they were written in", async () => {
    const seen: unknown[] = [];
    const { rota, clock } = await open((task) => {
      seen.push([task.message, task.sessionKey, task.conversationId]);
      return task.message === "look again" ? "looked" : LOOK;
    });
    const { taskId } = await rota.tasks.submit({ agentId: "a", message: "remind me", sessionKey: "chat:42" });
    await rota.tasks.wait(taskId);
    expect(await rota.schedules.get(1)).toMatchObject({ session_key: "chat:42", conversation_id: null });
    await rota.schedules.create({
      schedule: "in 10 minutes",
      message: "remind me",
      agent: "a",
      session_key: "chat:7",
      conversation_id: "conv-9",
    });
    await clock.advance(10 * 60_000);
    expect(await rota.schedules.get(3)).toMatchObject({ session_key: "chat:7", conversation_id: "conv-9" });
    await clock.advance(60 * 60_000);
    expect(seen.slice(-2)).toEqual([
      ["look again", "chat:42", undefined],
      ["look again", "chat:7", "conv-9"],
    ]);
  });

  test("of a run come back to the session of that run", async () => {
    const { rota, clock } = await open(() => LOOK);
    await rota.schedules.create({ schedule: "in 1 minute", message: "remind me", agent: "a" });
    await clock.advance(60_000);
    expect(await rota.schedules.get(2)).toMatchObject({ message: "look again", session_key: "schedule:1" });
  });

  test("written in no session begin one of their own", async () => {
    const { rota, ask } = await open(repeat);
    await ask(LOOK);
    expect(await rota.schedules.get(1)).toMatchObject({ session_key: null, conversation_id: null });
  });

  test("touch the agent's own schedules alone", async () => {
    const { rota, ask } = await open(repeat);
    await rota.schedules.create({ schedule: "every hour", message: "other", agent: "index" });
    const { result } = await ask("/schedule cancel 1\n/schedule list");
    expect(replies(result)).toEqual(["ERR: no schedule #1", "(none)"]);
    expect(await schedules(rota)).toHaveLength(1);
  });

  test("can cancel the schedule of the very run that asks for it, which comes to its end", async () => {
    const { rota, clock } = await open(() => "that is all\n/schedule cancel 1");
    await rota.schedules.create({ schedule: "every minute", message: "look", agent: "a" });
    const done = rota.events({ scheduleId: 1 });
    await clock.advance(60_000);
    for await (const { type, result } of done) {
      expect(type).not.toBe("task.cancelled");
      if (type !== "task.completed") continue;
      expect(replies(result)).toEqual(["OK: canceled #1"]);
      break;
    }
    expect(await schedules(rota)).toEqual([]);
  });

  test("make runs whose own results are searched for writs, too", async () => {
    let answer = "/schedule in 1 minute: once more";
    const { rota, ask, clock } = await open(() => answer);
    await ask();
    answer = "/schedule in 2 minutes: and again";
    await clock.advance(60_000);
    answer = "that is all";
    expect((await schedules(rota)).map(({ id, status }) => [id, status])).toContainEqual([2, "active"]);
    await clock.advance(120_000);
    expect((await rota.runs.list()).runs.map(({ result_summary }) => result_summary)).toEqual([
      "that is all",
      expect.stringContaining("OK: scheduled #2"),
    ]);
  });
});

describe("the writs that a result can contain", () => {
  test("is five things: the rest is refused at once", async () => {
    const { rota, ask } = await open(repeat);
    const { result } = await ask(`${LOOK}\n`.repeat(9));
    expect(replies(result)).toEqual([
      ...Array.from({ length: 5 }, (_, index) => expect.stringMatching(`^OK: scheduled #${index + 1} `)),
      "ERR: an answer can have 5 writs at most: this one and 3 more were not carried out",
    ]);
    expect(await schedules(rota)).toHaveLength(5);
    expect(replies((await ask("/schedule list\n".repeat(6))).result).at(-1)).toBe(
      "ERR: an answer can have 5 writs at most: this one was not carried out",
    );
  });

  test.each(["every 10 seconds", "*/30 * * * * *", "0,59 0 9 * * *"])(
    "is not as often as %s",
    async (phrase) => {
      const { rota, ask } = await open(repeat);
      expect(replies((await ask(`/schedule ${phrase}: look`)).result)).toEqual([
        `ERR: "${phrase}" is too often: an answer can ask for every 60 seconds at most`,
      ]);
      expect(await schedules(rota)).toEqual([]);
    },
  );

  test.each(["every minute", "* * * * *", "in 5 seconds", "every day at 09:00"])(
    "may be %s",
    async (phrase) => {
      const { ask } = await open(repeat);
      expect(replies((await ask(`/schedule ${phrase}: look`)).result)).toEqual([
        expect.stringMatching(/^OK: scheduled #1/),
      ]);
    },
  );

  test("is not one more than a hundred active ones", async () => {
    const { rota, ask } = await open(repeat);
    for (let n = 0; n < 100; n++) {
      await rota.schedules.create({ schedule: "every day", message: "x", agent: "a" });
    }
    expect(replies((await ask(LOOK)).result)).toEqual([
      "ERR: 100 schedules are active, which is the limit: cancel one first",
    ]);
    expect(replies((await ask(`/schedule cancel 1\n${LOOK}`)).result)).toEqual([
      "OK: canceled #1",
      expect.stringMatching(/^OK: scheduled #101/),
    ]);
  });
});

describe("an answer", () => {
  test("of an attempt that was given up changes nothing", async () => {
    const latch = new Latch();
    const { rota } = await open(async () => {
      await latch.opened;
      return LOOK;
    });
    const { taskId } = await rota.tasks.submit({ agentId: "a", message: "x" });
    await settle();
    await rota.tasks.cancel(taskId);
    latch.open();
    await settle();
    expect(await schedules(rota)).toEqual([]);
  });

  test.each([
    ["another", "/schedule in 2 hours: look once more"],
    ["one among other things", `/schedule list\n${LOOK}\n/schedule list`],
  ])(
    "whose end was not stored creates nothing twice when its task is run again and asks for %s",
    async (_what, again) => {
      const clock = new ManualClock();
      const storage = asSharedStorage(await openMemory(clock));
      let answers = 0;
      let isCut = false;
      const answer: Executor = () => {
        answers += 1;
        // A model hardly ever returns the same text again.
        return answers === 1 ? LOOK : again;
      };
      const first = await open(answer, {
        clock,
        storage,
        meddler: {
          // From the answer on the first node reaches no other, except to store the schedule itself.
          before: ({ operation }) => {
            isCut ||= answers === 1 && operation === "schedules.create";
            if (isCut && operation !== "schedules.create") throw away();
          },
        },
      });
      const { taskId } = await first.rota.tasks.submit({ agentId: "a", message: "x" });
      await until(() => isCut, "the first answer to be carried out");
      const second = await open(answer, { clock, storage });
      await clock.advance(60_000);
      const task = await second.rota.tasks.get(taskId);
      expect([answers, task.state]).toEqual([2, "done"]);
      expect(replies(task.result)).toContainEqual(expect.stringMatching(/^OK: scheduled #1 in 1 hour /));
      expect(await schedules(second.rota)).toMatchObject([{ id: 1, message: "look again" }]);
    },
  );

  test("is kept, whatever becomes of its writs", async () => {
    const { rota, ask, log } = await open(repeat, {
      meddler: {
        before: ({ operation }) => {
          if (operation === "schedules.count") throw away();
          if (operation === "schedules.get") throw new TypeError("a fault of ours");
        },
      },
    });
    const message = `${LOOK}\n/schedule cancel 1`;
    const { result, state } = await ask(message);
    expect([state, String(result).startsWith(message)]).toEqual(["done", true]);
    expect(replies(result)).toEqual([
      "ERR: the connection was lost",
      "ERR: it could not be carried out: the log of the server says why",
    ]);
    expect(log.messages("error")).toEqual(["a writ could not be carried out"]);
    expect((await rota.tasks.counts()).counts).toEqual({ done: 1 });
  });

  test("that has no room for the blocks stays without them", async () => {
    const long = `${LOOK}\n${"x".repeat(1_048_576 - LOOK.length - 10)}`;
    const { rota, ask, log } = await open(() => long);
    expect((await ask()).result).toBe(long);
    expect(await schedules(rota)).toHaveLength(1);
    expect(log.messages("warn")).toContain("an answer has no room for the responses to its writs");
  });

  test("that cannot be kept fails as it would without any, and nothing is carried out", async () => {
    const { rota, ask } = await open(() => ({ text: LOOK, itself: 1n }));
    expect(await ask()).toMatchObject({
      state: "failed",
      error: expect.stringContaining("result is not JSON"),
    });
    expect(await schedules(rota)).toEqual([]);
  });

  test("that comes while the node drains is carried out, for others to fire", async () => {
    const latch = new Latch();
    const { rota } = await open(async () => {
      await latch.opened;
      return LOOK;
    });
    const { taskId } = await rota.tasks.submit({ agentId: "a", message: "x" });
    await settle();
    const drained = rota.drain();
    latch.open();
    await drained;
    expect(replies((await rota.tasks.get(taskId)).result)).toEqual([
      expect.stringMatching(/^OK: scheduled #1/),
    ]);
  });
});
