import type { Task } from "../../../src/client/index.ts";
import { useSession } from "../api/session.tsx";
import { shortId } from "./format.ts";
import { Link } from "./router.tsx";

type CreatedBy = NonNullable<Task["createdBy"]>;

const VIAS: Readonly<Record<CreatedBy["via"], string>> = {
  http: "over HTTP",
  mcp: "over MCP",
  cli: "with the CLI",
  library: "by the program itself",
  writ: "by a writ",
  schedule: "by a schedule",
  worker: "by a worker",
  dashboard: "in the dashboard",
};

/** Who made something, and how. */
export function MadeBy({ maker }: { readonly maker: CreatedBy }) {
  const { me } = useSession();
  const { keyId, agentId, via, client } = maker;
  return (
    <>
      {agentId !== null && (
        <div>
          agent{" "}
          <Link className="link" href={`/tasks?agentId=${encodeURIComponent(agentId)}`}>
            {agentId}
          </Link>
        </div>
      )}
      {keyId !== null && <div title={keyId}>{keyId === me.keyId ? "your key" : `key ${shortId(keyId)}`}</div>}
      {/* A server of another version may have further ways. */}
      <div>{VIAS[via] ?? via}</div>
      {client !== undefined && <div className="muted">{client}</div>}
    </>
  );
}
