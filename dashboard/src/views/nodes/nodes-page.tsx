import type { NodeInfo } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { useLiveState } from "../../live/live.tsx";
import { formatCount } from "../../parts/format.ts";
import { Empty } from "../../parts/notices.tsx";
import { Read } from "../../parts/read.tsx";
import { Link } from "../../parts/router.tsx";
import { StateGlyph } from "../../parts/state.tsx";
import { Relative } from "../../parts/time.tsx";
import { useQuery } from "../../queries/use-query.ts";
import { SlotGauge } from "../lanes/gauge.tsx";
import { RUNNING, tasksHref } from "../tasks/task-filters.ts";
import "./nodes.css";

/** Nodes join and leave without events. */
const EVERY_MS = 5_000;

const SHOWN = {
  alive: { glyph: "running", word: "Alive", note: "" },
  draining: { glyph: "paused", word: "Draining", note: "ends what runs and starts nothing" },
  lost: { glyph: "missed", word: "Lost", note: "other nodes take its tasks back" },
} as const;

/** The processes that run tasks: their lanes, and when they were last seen. */
export default function NodesPage() {
  const { client } = useSession();
  const { isPaused } = useLiveState();
  const query = useQuery({
    queryKey: ["nodes"],
    queryFn: ({ signal }) => client.nodes.list({ signal }),
    refetchInterval: isPaused ? false : EVERY_MS,
    meta: { live: () => false },
  });
  return (
    <Page title="Nodes">
      <Read query={query} what="The nodes">
        {({ nodes }) =>
          nodes.length === 0 ? (
            <Empty title="No node runs tasks">A node whose scheduler is disabled is not listed.</Empty>
          ) : (
            nodes.map((node) => <Node key={node.id} node={node} />)
          )
        }
      </Read>
    </Page>
  );
}

function Node({ node }: { readonly node: NodeInfo }) {
  const { me } = useSession();
  const { id, version, startedAt, lastSeenAt, lanes, state } = node;
  const { glyph, word, note } = SHOWN[state];
  return (
    <section className="cell rule node" aria-label={`Node ${id}`}>
      <div className="cell-head">
        <StateGlyph state={glyph} label={word} />
        <h2 className="mono cut">{id}</h2>
        {id === me.node && <span className="tag">shows you this page</span>}
        {state !== "alive" && <span className="tag tag-ask">{word}</span>}
        <span className="muted">
          {version !== null && `Rota ${version}, `}
          {startedAt !== null && (
            <>
              started <Relative at={startedAt} />,{" "}
            </>
          )}
          seen <Relative at={lastSeenAt} isPast />
          {note && `, ${note}`}
        </span>
      </div>
      {lanes.length === 0 && <p className="sub">It serves no lane.</p>}
      <ul className="lane-rows">
        {lanes.map(({ name, slots, running }) => (
          <li key={name}>
            <Link href={tasksHref({ state: RUNNING, lane: name })}>
              <b className="cut">{name}</b>
              <SlotGauge
                lane={{ name, concurrency: slots, total: slots, running, waiting: 0, oldestWaitMs: null }}
              />
              <span className={running === 0 ? "num muted" : "num"}>
                {formatCount(running)} of {formatCount(slots)}
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
