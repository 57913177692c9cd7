import type { Delivery, DeliveryFilter } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { useLiveState } from "../../live/live.tsx";
import { Button } from "../../parts/button.tsx";
import { ChipSelect, ChipText } from "../../parts/chip.tsx";
import { shortId } from "../../parts/format.ts";
import { Empty, NoMatch } from "../../parts/notices.tsx";
import { Read } from "../../parts/read.tsx";
import { type Column, Records } from "../../parts/records.tsx";
import { Relative } from "../../parts/time.tsx";
import { useAction } from "../../parts/use-action.ts";
import { useFilters } from "../../parts/use-filters.ts";
import { useInfiniteQuery } from "../../queries/use-query.ts";
import { answerOf, DELIVERY_SHOWN, hostOf } from "./delivery-text.ts";

const STATUSES = ["pending", "delivered", "failed"] as const;
const FILTERS = { status: STATUSES, taskId: undefined };
const PAGE = 100;
/** A delivery is tried again without an event. */
const EVERY_MS = 5_000;

const COLUMNS: readonly Column<Delivery>[] = [
  {
    head: "To",
    width: "minmax(10rem, 1.2fr)",
    phone: "main",
    className: "mono",
    glyph: ({ status }) => DELIVERY_SHOWN[status],
    cell: ({ url }) => hostOf(url),
  },
  {
    head: "Response",
    width: "minmax(8rem, 1fr)",
    phone: "below",
    cell: (delivery) => (
      <span className={delivery.status === "failed" ? "state-failed" : "sub"} title={delivery.error}>
        {answerOf(delivery)}
      </span>
    ),
  },
  {
    head: "About",
    width: "9.5rem",
    className: "id",
    cell: ({ batchId, taskId }) => shortId(batchId ?? taskId),
  },
  { head: "Tries", width: "3.5rem", className: "num", cell: ({ tries }) => tries },
  {
    head: "Last try",
    width: "7rem",
    className: "num muted",
    phone: "side",
    cell: ({ lastTryAt }) => (lastTryAt === undefined ? "–" : <Relative at={lastTryAt} />),
  },
  {
    head: "Next",
    width: "6rem",
    className: "num muted",
    from: "wide",
    cell: ({ nextTryAt }) => (nextTryAt === undefined ? "–" : <Relative at={nextTryAt} />),
  },
];

/** Every webhook delivery of the tenant, newest first. */
export default function WebhooksPage() {
  const { client, may } = useSession();
  const { isPaused } = useLiveState();
  const { filters, set, clear, count } = useFilters(FILTERS);
  const query = useInfiniteQuery({
    queryKey: ["deliveries", filters],
    queryFn: ({ signal, pageParam }) =>
      client.webhooks.deliveries(
        { ...(filters as DeliveryFilter), limit: PAGE, ...(pageParam && { cursor: pageParam }) },
        { signal },
      ),
    initialPageParam: "",
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: ({ state }) =>
      !isPaused &&
      state.data?.pages.some((page) => page.deliveries.some(({ status }) => status === "pending"))
        ? EVERY_MS
        : false,
    meta: { live: ({ type, state }) => type === "batch.completed" || ENDS.has(state) },
  });
  const resend = useAction((id: string) => client.webhooks.resend(id), {
    said: () => "Sent again",
    changes: ["deliveries"],
  });
  return (
    <Page title="Webhook deliveries">
      <div className="bar" role="group" aria-label="Filters">
        <ChipSelect
          label="Status"
          value={filters.status}
          options={STATUSES}
          onChange={(status) => set({ status })}
        />
        <ChipText
          label="Task"
          value={filters.taskId}
          onChange={(taskId) => set({ taskId })}
          placeholder="any id"
        />
      </div>
      <Read query={query} what="The deliveries">
        {({ pages }) => {
          const deliveries = pages.flatMap((page) => page.deliveries);
          if (deliveries.length === 0 && !query.hasNextPage) {
            return count > 0 ? (
              <NoMatch what="delivery" filters={count} onClear={clear} />
            ) : (
              <Empty title="No callbacks yet">
                The end of a task with a <code>callbackUrl</code> is sent there.
              </Empty>
            );
          }
          return (
            <Records
              label="Webhook deliveries"
              columns={COLUMNS}
              rows={deliveries}
              keyOf={({ deliveryId }) => deliveryId}
              href={({ batchId, taskId }) =>
                batchId === undefined ? `/tasks/${taskId}` : `/batches/${batchId}`
              }
              actions={
                may("operate")
                  ? ({ deliveryId, status }) =>
                      status !== "pending" && (
                        <Button className="btn-quiet" onClick={() => resend.mutate(deliveryId)}>
                          Send again
                        </Button>
                      )
                  : undefined
              }
              actionsWidth="6rem"
              onMore={query.hasNextPage ? query.fetchNextPage : undefined}
              isFetching={query.isFetchingNextPage}
            />
          );
        }}
      </Read>
    </Page>
  );
}

const ENDS: ReadonlySet<string> = new Set(["done", "failed", "cancelled", "rejected"]);
