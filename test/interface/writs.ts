import { describe, expect, test } from "vitest";
import { ACCEPTED_FORMS } from "../../src/schedules/accepted-forms.ts";
import { minuteText } from "../../src/schedules/moment-text.ts";
import { localZone } from "../../src/schedules/zone.ts";
import { Held } from "../support/held.ts";
import { errorOf, type Open, type Opened } from "./opened.ts";

const RESEARCH = { agents: { research: {}, writer: {} } };

async function write({ api }: Opened, agent: string, ...lines: string[]): Promise<string[]> {
  return (await api.writs.carryOut({ agent, text: lines.join("\n") })).output.split("\n");
}

/** A moment as blocks show it. */
function shown(moment: number): string {
  return minuteText(localZone(), moment);
}

export function describeWrits(open: Open): void {
  describe("writs", () => {
    test("make schedules, list, pause, resume and cancel them, one after the other", async () => {
      const opened = await open({ options: RESEARCH });
      const { api, clock } = opened;
      const inAnHour = shown(clock.now() + 3_600_000);
      const message = "review the deploy status and report regressions";
      const { ok, output } = await api.writs.carryOut({
        agent: "research",
        text: `Will do.\n/schedule in 1 hour: ${message}\n/schedule list\n/schedule pause 1\n/schedule list\n/schedule resume #1\n/schedule cancel 1\n/schedule list`,
      });
      expect(ok).toBe(true);
      expect(output).toBe(
        [
          "[/schedule create in 1 hour: review the deploy status and …]",
          `OK: scheduled #1 in 1 hour (${inAnHour}) → research`,
          `  message: ${message}`,
          "[END SCHEDULE]",
          "[/schedule list]",
          `#1 active in 1 hour, next ${inAnHour} → research: ${message}`,
          "[END SCHEDULE]",
          "[/schedule pause 1]",
          "OK: paused #1",
          "[END SCHEDULE]",
          "[/schedule list]",
          `#1 paused in 1 hour → research: ${message}`,
          "[END SCHEDULE]",
          "[/schedule resume 1]",
          "OK: resumed #1",
          "[END SCHEDULE]",
          "[/schedule cancel 1]",
          "OK: canceled #1",
          "[END SCHEDULE]",
          "[/schedule list]",
          "(none)",
          "[END SCHEDULE]",
        ].join("\n"),
      );
    });

    test("make schedules of the agent that are like any other", async () => {
      const opened = await open({ options: RESEARCH });
      const { api } = opened;
      await write(opened, "research", '/schedule "every monday at 9am": sum up: all of it');
      expect(await api.schedules.get(1)).toMatchObject({
        agent_id: "research",
        message: "sum up: all of it",
        schedule_phrase: "every monday at 9am",
        tz: localZone(),
        status: "active",
      });
      await write(opened, "research", "/schedule pause 1");
      expect(await api.schedules.get(1)).toMatchObject({ status: "paused", enabled: false });
    });

    test("keep the session and the conversation that they are said to be written in", async () => {
      const { api } = await open();
      const text = "/schedule every hour: look";
      await api.writs.carryOut({ text, session_key: "chat:42", conversation_id: 7 });
      await api.writs.carryOut({ text, conversation_id: "c7" });
      await api.writs.carryOut({ text, session_key: null, conversation_id: null });
      expect(await api.schedules.get(1)).toMatchObject({ session_key: "chat:42", conversation_id: "7" });
      expect(await api.schedules.get(2)).toMatchObject({ session_key: null, conversation_id: "c7" });
      expect(await api.schedules.get(3)).toMatchObject({ session_key: null, conversation_id: null });
    });

    test("are those of index where no agent is named", async () => {
      const { api } = await open();
      const { output } = await api.writs.carryOut({ text: "/schedule every hour: look" });
      expect(output).toContain("OK: scheduled #1 every hour (");
      expect((await api.schedules.get(1)).agent_id).toBe("index");
    });

    test("see and change no schedules of others", async () => {
      const opened = await open({ options: RESEARCH });
      const { api } = opened;
      await write(opened, "writer", "/schedule every hour: write");
      const before = await api.schedules.get(1);
      const lines = ["list", "pause 1", "resume 1", "cancel 1", "cancel 99"].map(
        (line) => `/schedule ${line}`,
      );
      expect((await api.writs.carryOut({ agent: "research", text: lines.join("\n") })).ok).toBe(false);
      const replies = (await write(opened, "research", ...lines)).filter((line) => !line.startsWith("["));
      expect(replies).toEqual(["(none)", ...[1, 1, 1, 99].map((id) => `ERR: no schedule #${id}`)]);
      expect(await api.schedules.get(1)).toEqual(before);
    });

    test("list what is next by the clocks of each schedule's own zone", async () => {
      const opened = await open({ options: RESEARCH });
      const { api } = opened;
      for (const tz of ["Asia/Tokyo", "America/New_York"]) {
        await api.schedules.create({
          schedule: "every day at 09:00",
          message: "look",
          agent: "research",
          tz,
        });
      }
      expect(
        (await write(opened, "research", "/schedule list")).filter((line) => line.startsWith("#")),
      ).toEqual([
        "#2 active every day at 09:00, next 2026-01-01 09:00 → research: look",
        "#1 active every day at 09:00, next 2026-01-02 09:00 → research: look",
      ]);
    });

    test("that cancel let what runs come to its end, and no more", async () => {
      const held = new Held();
      const opened = await open({ options: { ...RESEARCH, executors: { message: held.executor } } });
      const { api } = opened;
      await api.schedules.create({
        schedule: "every hour",
        message: "x",
        agent: "research",
        overlap: "queue",
      });
      await api.schedules.run(1);
      await api.schedules.run(1);
      expect(await held.startedAfterAWhile()).toBe(1);
      const { runs } = await api.schedules.runs(1);
      const [waits = "", goes = ""] = runs.map(({ queue_task_id }) => queue_task_id ?? "");
      expect(await write(opened, "research", "/schedule cancel 1")).toContain("OK: canceled #1");
      expect(await api.tasks.get(waits)).toMatchObject({ state: "cancelled", error: "schedule deleted" });
      expect(await api.tasks.get(goes)).toMatchObject({ state: "running" });
      await held.end();
      expect(await api.tasks.get(goes)).toMatchObject({ state: "done" });
    });

    test("that cannot be carried out say why, and the others go on", async () => {
      const opened = await open({ options: RESEARCH });
      const { api } = opened;
      const text = "/schedule soon: x\n/schedule in 1 hour\n/schedule every hour: look";
      const { ok, output } = await api.writs.carryOut({ agent: "research", text });
      expect(ok).toBe(false);
      const [soon, incomplete, made] = output
        .split("[END SCHEDULE]")
        .map((block) => block.trim().split("\n"));
      const forms = ACCEPTED_FORMS.map(({ form }) => `    ${form}`);
      expect(soon).toEqual([
        "[/schedule create soon: x]",
        expect.stringMatching(/^ERR: .*"soon" was not understood/),
        "  accepted forms:",
        ...forms,
      ]);
      expect(incomplete?.[1]).toMatch(/^ERR: write a colon and a space/);
      expect(made?.[1]).toMatch(/^OK: scheduled #1 every hour/);
      expect((await api.schedules.list()).count).toBe(1);
    });

    test("cannot resume what has come and gone, nor pause what is over", async () => {
      const opened = await open({ options: RESEARCH });
      await write(opened, "research", "/schedule in 1 minute: look");
      opened.rota.agent("research", async () => "looked");
      await opened.clock.advance(60_000);
      for (const order of ["pause", "resume"]) {
        expect(await write(opened, "research", `/schedule ${order} 1`)).toEqual([
          `[/schedule ${order} 1]`,
          expect.stringMatching(/^ERR: .*schedule 1/),
          "[END SCHEDULE]",
        ]);
      }
      expect(await write(opened, "research", "/schedule list")).toContain("(none)");
    });

    test("that are invalid get a reply with what was expected", async () => {
      const { api } = await open();
      const { ok, output } = await api.writs.carryOut({ text: "please look again\nin an hour" });
      expect(ok).toBe(false);
      expect(output.split("\n").slice(0, 4)).toEqual([
        "[/schedule please look again in an hour]",
        'ERR: a writ begins with "/schedule"',
        "  accepted forms:",
        "    /schedule PHRASE: MESSAGE",
      ]);
    });

    test("of an agent that is not listed are refused", async () => {
      const { api } = await open({ options: RESEARCH });
      const error = await errorOf(api.writs.carryOut({ agent: "reserch", text: "/schedule list" }));
      expect(error).toMatchObject({
        code: "not_found",
        message: 'agent "reserch" not found: did you mean "research"?',
      });
    });

    test("are refused with a sentence when they cannot be any", async () => {
      const { api } = await open();
      for (const [input, field] of [
        [{ text: 5 }, "text"],
        [{}, "text"],
        [undefined, "text"],
        [{ text: "/schedule list", agent: "two\nlines" }, "agent"],
        [{ text: "/schedule list", agnt: "a" }, "agnt"],
        [{ text: "/schedule list", session_key: ".." }, "session_key"],
        [{ text: "/schedule list", conversation_id: 1.5 }, "conversation_id"],
        [{ text: "/schedule every hour: x\n".repeat(51) }, "text"],
      ] as const) {
        expect(await errorOf(api.writs.carryOut(input as never))).toMatchObject({
          code: "invalid_field",
          details: { field },
        });
      }
      expect((await api.schedules.list()).count).toBe(0);
    });

    test("are not carried out while the scheduler does not run", async () => {
      const output = "[/schedule create every hour: x]\nERR: scheduler is not running\n[END SCHEDULE]";
      const writ = { text: "/schedule every hour: x" };
      const disabled = await open({ options: { scheduler: { enabled: false } } });
      expect(await errorOf(disabled.api.writs.carryOut(writ))).toMatchObject({
        code: "scheduler_disabled",
        details: { output },
      });
      const drained = await open();
      await drained.rota.drain();
      expect(await errorOf(drained.api.writs.carryOut(writ))).toMatchObject({
        code: "draining",
        details: { output },
      });
      for (const { api } of [disabled, drained]) expect((await api.schedules.list()).count).toBe(0);
    });
  });

  describe("agents that may write writs into their results", () => {
    test("are described so, and no longer", async () => {
      const { api } = await open({ options: { agents: { configured: { writs: true } } } });
      expect(await api.agents.get("configured")).toEqual({ id: "configured", writs: true, source: "config" });
      expect(await api.agents.create({ id: "a", writs: true })).toEqual({
        id: "a",
        writs: true,
        source: "stored",
      });
      expect(await api.agents.update("a", { writs: null })).toEqual({ id: "a", source: "stored" });
      expect(await errorOf(api.agents.update("a", { writs: "yes" as never }))).toMatchObject({
        code: "invalid_field",
        details: { field: "writs" },
      });
    });

    test("have them carried out, and get replies with their outcomes", async () => {
      const { api, clock } = await open();
      await api.agents.create({ id: "parrot", executor: { type: "echo" }, writs: true });
      const message = "Sure.\n/schedule in 1 hour: look again";
      const { taskId } = await api.tasks.submit({ agentId: "parrot", message });
      expect((await api.tasks.wait(taskId)).result).toBe(
        [
          message,
          "",
          "[/schedule create in 1 hour: look again]",
          `OK: scheduled #1 in 1 hour (${shown(clock.now() + 3_600_000)}) → parrot`,
          "  message: look again",
          "[END SCHEDULE]",
        ].join("\n"),
      );
      expect(await api.schedules.get(1)).toMatchObject({ agent_id: "parrot", message: "look again" });
    });
  });
}
