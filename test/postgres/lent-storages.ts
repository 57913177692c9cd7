import { Client } from "pg";
import type { Clock } from "../../src/model/clock.ts";
import { openPostgres } from "../../src/storage/postgres/connection/open.ts";
import type { Storage } from "../../src/storage/storage.ts";
import type { DatabaseCopies } from "./database-copies.ts";

export interface LentStorage {
  storage: Storage;
  /** Empties it for the next test. */
  dispose(): Promise<void>;
}

/**
 * Lends open storages, one at a time to each, and empties them in between. Connecting and warming up takes ten times as
 * long as most tests of the storage, so that doing it for each of them would be most of the time they take.
 */
export class LentStorages {
  readonly #copies: DatabaseCopies;
  readonly #all: Loan[] = [];
  readonly #free: Loan[] = [];

  constructor(copies: DatabaseCopies) {
    this.#copies = copies;
  }

  async lend(clock: Clock): Promise<LentStorage> {
    const loan = this.#free.pop() ?? (await this.#make(clock));
    loan.clock.lender = clock;
    const dispose = async () => {
      await empty(loan);
      this.#free.push(loan);
    };
    return { storage: loan.storage, dispose };
  }

  async #make(clock: Clock): Promise<Loan> {
    const loan = await makeLoan(this.#copies, clock);
    this.#all.push(loan);
    return loan;
  }

  async close(): Promise<void> {
    for (const { storage, admin } of this.#all) await Promise.all([storage.close(), admin.end()]);
  }
}

interface Loan {
  storage: Storage;
  readonly url: string;
  readonly clock: LentClock;
  readonly admin: Client;
}

/** A clock that shows the time of the test that has the storage now. */
class LentClock implements Clock {
  lender: Clock | undefined;

  now(): number {
    return this.#lender().now();
  }

  monotonic(): number {
    return this.#lender().monotonic();
  }

  setTimer(delayMs: number, callback: () => void) {
    return this.#lender().setTimer(delayMs, callback);
  }

  #lender(): Clock {
    if (this.lender === undefined) throw new Error("No test has this storage now.");
    return this.lender;
  }
}

async function makeLoan(copies: DatabaseCopies, lender: Clock): Promise<Loan> {
  const { url } = await copies.copy();
  const clock = new LentClock();
  clock.lender = lender;
  const admin = new Client({ connectionString: url });
  await admin.connect();
  return { storage: await openPostgres({ url, clock }), url, clock, admin };
}

async function empty(loan: Loan): Promise<void> {
  await loan.admin.query(EMPTY);
  // A test may have closed it, to see what it does then.
  const isOpen = await loan.storage.now().then(
    () => true,
    () => false,
  );
  if (!isOpen) loan.storage = await openPostgres({ url: loan.url, clock: loan.clock });
  loan.clock.lender = undefined;
}

/**
 * Rows are deleted: to truncate a table writes new files for it and its indexes, and has every connection plan its
 * statements anew, both of which take longer than most tests. A table that has grown is truncated all the same, since
 * deleted rows still slow down its readers. Triggers stay out of it: everything goes.
 */
const EMPTY = `
do $$
declare
  v_table regclass;
begin
  set local session_replication_role = replica;
  for v_table in
    select c.oid from pg_class c
    where c.relnamespace = 'rota'::regnamespace and c.relkind = 'r' and c.relname <> 'schema_version'
  loop
    if pg_relation_size(v_table) > 262144 then execute 'truncate ' || v_table || ' cascade';
    else execute 'delete from ' || v_table;
    end if;
  end loop;
  insert into rota.tenant (id, name, created_at, updated_at) values ('default', 'default', 0, 0);
  insert into rota.ability default values;
end $$`;
