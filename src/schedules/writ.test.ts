import { describe, expect, test } from "vitest";
import { parseWrit } from "./writ.ts";

describe("a writ", () => {
  test.each([
    ["/schedule in 1 hour: review the deploy", "in 1 hour", "review the deploy"],
    ["/schedule every monday at 09:00: summarise", "every monday at 09:00", "summarise"],
    ['/schedule "every monday at 09:00": summarise', "every monday at 09:00", "summarise"],
    ["/schedule 'in 1 hour' : look again", "in 1 hour", "look again"],
    ["/schedule “every monday at 09:00”: say “hello”", "every monday at 09:00", "say “hello”"],
    ["/schedule ‘in 1 hour’: look again", "in 1 hour", "look again"],
    ["/schedule „in 1 hour“ : look again", "in 1 hour", "look again"],
    ["/schedule in 1 hour: say “hello”: twice", "in 1 hour", "say “hello”: twice"],
    ["  /SCHEDULE   at 17:00:   tell: it is 17:00  ", "at 17:00", "tell: it is 17:00"],
    ["/schedule in 5 min:\nfirst line\nsecond line", "in 5 min", "first line\nsecond line"],
    ["/schedule 0 9 * * 1-5: stand up", "0 9 * * 1-5", "stand up"],
    ["/schedule listen: attend", "listen", "attend"],
    ["/schedule list: attend", "list", "attend"],
    ["/schedule in 1 hour:look", "in 1 hour", "look"],
    ["/schedule in 1 hour:5 things", "in 1 hour", "5 things"],
    ["/schedule at 17:00:look at http://x.example", "at 17:00", "look at http://x.example"],
    ["/schedule every day at 9:30am:look", "every day at 9:30am", "look"],
    ['/schedule "at 17:00":look', "at 17:00", "look"],
    // A colon with a space behind it goes before one without.
    ["/schedule in 1 hour:look at this: now", "in 1 hour:look at this", "now"],
  ])("%j makes a schedule", (text, phrase, message) => {
    expect(parseWrit(text)).toEqual({ kind: "create", phrase, message });
  });

  test.each([
    ["/schedule list", { kind: "list" }],
    [" /schedule  LIST \n", { kind: "list" }],
    ["/schedule cancel 42", { kind: "cancel", id: 42 }],
    ["/schedule pause #7", { kind: "pause", id: 7 }],
    ["/schedule Resume 1", { kind: "resume", id: 1 }],
  ])("%j is understood", (text, writ) => {
    expect(parseWrit(text)).toEqual(writ);
  });

  test.each([
    ["schedule in 1 hour: x", 'begins with "/schedule"'],
    ["/scheduled in 1 hour: x", 'begins with "/schedule"'],
    ["", 'begins with "/schedule"'],
    ["/schedule", "a colon and a space"],
    ["/schedule in 1 hour", "a colon and a space"],
    ["/schedule at 17:00", "a colon and a space"],
    ["/schedule at 17:00:30 look", "a colon and a space"],
    ["/schedule in 1\nhour:look", "a colon and a space"],
    ["/schedule :look", "a colon and a space"],
    ["/schedule in 1 hour:", "message after the colon is missing"],
    ["/schedule in 1 hour:   ", "message after the colon is missing"],
    ["/schedule in 1\nhour: x", "a colon and a space"],
    ["/schedule list all", 'nothing can follow "list"'],
    ["/schedule cancel", "/schedule cancel 42"],
    ["/schedule pause all", "/schedule pause 42"],
    ["/schedule resume 1 2", "/schedule resume 42"],
    ["/schedule cancel 99999999999999999999", "/schedule cancel 42"],
  ])("%j is refused", (text, reason) => {
    expect(parseWrit(text)).toMatchObject({ kind: "invalid", reason: expect.stringContaining(reason) });
  });
});
