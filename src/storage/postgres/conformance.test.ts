import { afterAll } from "vitest";
import { prepareDatabaseCopies } from "../../../test/postgres/database-copies.ts";
import { LentStorages } from "../../../test/postgres/lent-storages.ts";
import { describeStorage } from "../conformance/index.ts";
import { openPostgres } from "./connection/open.ts";

const copies = await prepareDatabaseCopies(async (url) => (await openPostgres({ url })).close());
const storages = new LentStorages(copies);
afterAll(async () => {
  await storages.close();
  await copies.drop();
});

describeStorage("PostgreSQL", {
  capabilities: { durable: true, exclusive: false, claimsAhead: true },
  nodesDiffer: true,
  propertyRuns: 25,
  open: (clock) => storages.lend(clock),
});
