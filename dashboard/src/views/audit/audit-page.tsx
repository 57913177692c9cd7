import type { AuditFilter, AuditRecord } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { useLiveState } from "../../live/live.tsx";
import { ChipSelect } from "../../parts/chip.tsx";
import { countOf, shortId } from "../../parts/format.ts";
import { Empty, NoMatch } from "../../parts/notices.tsx";
import { Read } from "../../parts/read.tsx";
import { type Column, Records } from "../../parts/records.tsx";
import { Clock } from "../../parts/time.tsx";
import { useFilters } from "../../parts/use-filters.ts";
import { useInfiniteQuery, useQuery } from "../../queries/use-query.ts";
import { RANGES } from "../tasks/task-filters.ts";
import { TenantChip } from "../tenants/limits.tsx";

const FILTERS = { since: Object.keys(RANGES), keyId: undefined, tenantId: undefined };
const PAGE = 200;
/** Changes by other people come without events. */
const EVERY_MS = 10_000;

/** Who did what, and when, newest first; also what was refused. */
export default function AuditPage() {
  const { client } = useSession();
  const { isPaused } = useLiveState();
  const { filters, set, clear, count } = useFilters(FILTERS);
  const { since, keyId, tenantId } = filters;
  const owner = tenantId === undefined ? {} : { tenantId };
  const { data: keys } = useQuery({
    queryKey: ["keys", tenantId],
    queryFn: ({ signal }) => client.keys.list(owner, { signal }),
  });
  const names = new Map(keys?.keys.map(({ id, name }) => [id, name]));
  const query = useInfiniteQuery({
    queryKey: ["audit", filters],
    queryFn: ({ signal, pageParam }) => {
      const ms = since === undefined ? undefined : RANGES[since]?.ms;
      const filter: AuditFilter = {
        ...owner,
        ...(keyId !== undefined && { keyId }),
        ...(ms !== undefined && { since: new Date(Date.now() - ms).toISOString() }),
        ...(pageParam && { cursor: pageParam }),
      };
      return client.audit.list({ ...filter, limit: PAGE }, { signal });
    },
    initialPageParam: "",
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: isPaused ? false : EVERY_MS,
  });
  return (
    <Page title="Audit log">
      <div className="bar" role="group" aria-label="Filters">
        <ChipSelect
          label="Since"
          value={since}
          options={Object.entries(RANGES).map(([name, { label }]) => [name, label])}
          onChange={(value) => set({ since: value })}
        />
        <ChipSelect
          label="Key"
          value={keyId}
          options={[...names]}
          onChange={(value) => set({ keyId: value })}
        />
        <TenantChip value={tenantId} onChange={(value) => set({ tenantId: value, keyId: "" })} />
      </div>
      <Read query={query} what="The audit log">
        {({ pages }) => {
          const entries = pages.flatMap((page) => page.entries);
          if (entries.length === 0 && !query.hasNextPage) {
            return count > 0 ? (
              <NoMatch what="entry" filters={count} onClear={clear} />
            ) : (
              <Empty title="Nothing was changed yet">
                Every change and every refused request is listed here.
              </Empty>
            );
          }
          return (
            <Records
              label="Audit log"
              columns={columnsOf(names)}
              rows={entries.map((entry, index) => ({ ...entry, index }))}
              keyOf={({ index }) => index}
              onMore={query.hasNextPage ? query.fetchNextPage : undefined}
              isFetching={query.isFetchingNextPage}
            />
          );
        }}
      </Read>
    </Page>
  );
}

/** Of ids only the end differs, which would be cut off. */
function Subject({ subject }: { readonly subject: string }) {
  if (!/^\w{3}_[\da-f]{32}$/.test(subject)) return <span title={subject}>{subject}</span>;
  return (
    <span className="id" title={subject}>
      {shortId(subject)}
    </span>
  );
}

function columnsOf(names: ReadonlyMap<string, string>): readonly Column<AuditRecord>[] {
  return [
    {
      head: "Request",
      width: "minmax(12rem, 1.2fr)",
      phone: "main",
      className: "mono",
      glyph: ({ status }) => (status === undefined ? ["done", "Done"] : ["rejected", "Refused"]),
      cell: ({ route }) => <span className="cut">{route}</span>,
    },
    {
      head: "About",
      width: "minmax(8rem, 1fr)",
      phone: "below",
      cell: ({ subject, status, count = 1 }) => (
        <>
          {subject === null ? status === undefined && "–" : <Subject subject={subject} />}
          {status !== undefined && (
            <span className="state-ask">
              {" "}
              refused with {status}
              {count > 1 && `, ${countOf(count, "time")}`}
            </span>
          )}
        </>
      ),
    },
    {
      head: "Key",
      width: "10rem",
      cell: ({ keyId }) =>
        keyId === null ? (
          <span className="muted">none</span>
        ) : (
          <span title={keyId}>{names.get(keyId) ?? shortId(keyId)}</span>
        ),
    },
    { head: "From", width: "9rem", className: "sub", from: "wide", cell: ({ address }) => address ?? "–" },
    {
      head: "Time",
      width: "9rem",
      className: "num muted",
      phone: "side",
      cell: ({ at }) => <Clock at={at} />,
    },
  ];
}
