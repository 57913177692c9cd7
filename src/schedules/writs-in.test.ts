import { describe, expect, test } from "vitest";
import { writsIn } from "./writs-in.ts";

const LOOK = { kind: "create", phrase: "in 1 hour", message: "look again" };

describe("the writs of a text", () => {
  test("are its lines that begin with /schedule, in order", () => {
    const text = [
      "Will do.",
      "/schedule in 1 hour: look again",
      "and then",
      "  /SCHEDULE list",
      "see /schedule list",
      "/scheduled for later: no",
      "/schedule",
    ];
    const writs = [LOOK, { kind: "list" }, { kind: "invalid", text: "", reason: expect.any(String) }];
    for (const lineEnd of ["\n", "\r\n", "\r"]) expect(writsIn(text.join(lineEnd))).toEqual(writs);
  });

  test.each([
    "- /schedule in 1 hour: look again",
    "  -   /schedule in 1 hour: look again",
    "`/schedule in 1 hour: look again`",
    "- `/schedule in 1 hour: look again`  ",
    "``/schedule in 1 hour: look again``",
    "```/schedule in 1 hour: look again```",
    "`/schedule in 1 hour: look again",
    "`/schedule in 1 hour:`\nlook again",
  ])("may be items of a list, or in backticks: %j", (text) => {
    expect(writsIn(text)).toEqual([LOOK]);
    expect(writsIn(text, { quotes: true })).toEqual([LOOK]);
  });

  test.each([
    "`/schedule in 1 hour: look again` would remind you",
    "`/schedule cancel 5` and `/schedule list`",
    "-/schedule list",
    "-- /schedule list",
    "> /schedule list",
    "x `/schedule list`",
  ])("are not sentences about them: %j", (text) => {
    expect(writsIn(text)).toEqual([]);
  });

  test("are found in a line of spaces without end in the time that it takes to read it", () => {
    for (const text of [" ".repeat(1_000_000), `- ${" ".repeat(1_000_000)}x`, "`".repeat(1_000_000)])
      expect(writsIn(text)).toEqual([]);
  });

  test("are none where there are none", () => {
    for (const text of ["", "hello", "x /schedule list", "/schedules list"])
      expect(writsIn(text)).toEqual([]);
  });

  test("take their message from the lines below where theirs ends with the colon", () => {
    const text =
      "/schedule in 1 hour:\nlook\nagain\n\nprose\n/schedule every day at 09:00:\nsum up\n/schedule list";
    expect(writsIn(text)).toEqual([
      { ...LOOK, message: "look\nagain" },
      { kind: "create", phrase: "every day at 09:00", message: "sum up" },
      { kind: "list" },
    ]);
  });

  test("keep a message after the colon, and are invalid without a message", () => {
    expect(writsIn("/schedule in 1 hour: tell me:\nprose")).toEqual([{ ...LOOK, message: "tell me:" }]);
    for (const text of ["/schedule in 1 hour:", "/schedule in 1 hour:\n\nlook again"]) {
      expect(writsIn(text)).toMatchObject([{ kind: "invalid", reason: expect.stringContaining("missing") }]);
    }
  });
});

describe("quoted text", () => {
  const read = (...lines: string[]) => writsIn(lines.join("\n"), { quotes: true });
  const writ = "/schedule in 1 hour: look again";

  test.each([
    ["between fences", ["```", writ, "```"]],
    ["between fences that name a language", ["```sh", writ, "```"]],
    ["between tildes", ["~~~", writ, "~~~"]],
    ["where the fence never closes", ["```", writ]],
    ["where another kind of fence is inside", ["````", "```", "~~~", writ, "````"]],
    ["behind a fence with words, which closes nothing", ["```", "``` no", writ, "```"]],
  ])("is no writ: %s", (_where, lines) => {
    expect(read("Like this:", ...lines)).toEqual([]);
  });

  test("is a writ if quotes are not recognised", () => {
    expect(writsIn(["```", writ, "```"].join("\n"))).toEqual([LOOK]);
  });

  test("ends where its fence closes", () => {
    expect(read("```", "quoted", "````", writ)).toEqual([LOOK]);
    expect(read("`inline`", writ, "```", writ, "```", writ)).toEqual([LOOK, LOOK]);
  });

  test("is not taken for a message", () => {
    expect(read("/schedule in 1 hour:", "```", "look again", "```")).toMatchObject([{ kind: "invalid" }]);
  });
});

test("a text of a hundred thousand lines takes no longer than it must", () => {
  // A look at all the rest for each line would take longer than a test may.
  const text = `${"/schedule in 1 hour:\n".repeat(50_000)}${"x\n".repeat(50_000)}`;
  expect(writsIn(text)).toHaveLength(50_000);
});
