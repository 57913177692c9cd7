import { DatabaseError } from "pg";
import { expect, test } from "vitest";
import { RotaError } from "../../../model/errors.ts";
import { isNotUpYet, toRotaError } from "./errors.ts";

function systemError(code: string, syscall = "connect"): Error {
  return Object.assign(new Error(`${syscall} ${code}`), { code, syscall });
}

function databaseError(code: string): DatabaseError {
  return Object.assign(new DatabaseError(code, 0, "error"), { code });
}

test.each([
  ["no server listens", systemError("ECONNREFUSED")],
  ["its name is not known yet", systemError("EAI_AGAIN", "getaddrinfo")],
  ["its container has no name yet", systemError("ENOTFOUND", "getaddrinfo")],
  ["there is no way to it", systemError("EHOSTUNREACH")],
  ["its socket is not there yet", systemError("ENOENT")],
  ["it hung up", new Error("Connection terminated unexpectedly")],
  ["it did not answer", new Error("timeout expired")],
  ["it starts", databaseError("57P03")],
  [
    "none of its addresses answers",
    new AggregateError([systemError("ECONNREFUSED"), systemError("ETIMEDOUT")]),
  ],
])("a database is not up yet while %s", (_what, error) => {
  expect(isNotUpYet(error)).toBe(true);
  expect(isNotUpYet(toRotaError(error))).toBe(true);
});

test.each([
  ["the password is wrong", databaseError("28P01")],
  ["it has no such user", databaseError("28000")],
  ["there is no such database", databaseError("3D000")],
  ["the user may do too little", databaseError("42501")],
  ["a file of the connection is missing", systemError("ENOENT", "open")],
  ["its certificate is not known", systemError("SELF_SIGNED_CERT_IN_CHAIN")],
  ["it speaks no TLS", new Error("The server does not support SSL connections")],
  ["a newer Rota has changed it", new RotaError("storage_unavailable", "start a newer Rota on it")],
])("a database is not waited for when %s", (_what, error) => {
  expect(isNotUpYet(toRotaError(error))).toBe(false);
});
