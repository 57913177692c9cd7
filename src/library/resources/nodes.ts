import { LEASE_MS } from "../../engine/node/heartbeat.ts";
import type { NodeInfo, NodeState, Nodes } from "../../interface/nodes.ts";
import { rfc3339 } from "../../model/text/rfc3339.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import type { NodeDetails, Storage } from "../../storage/storage.ts";

export interface NodesOptions {
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  /** The id of this process. */
  readonly node: () => string;
}

/** The nodes, as an admin sees them. */
export function createNodes({ storage, storageClock, node: ownId }: NodesOptions): Nodes {
  function toInfo(details: NodeDetails): NodeInfo {
    const { node, version, startedAt, lanes } = details;
    const now = storageClock.now();
    // A process that does not share its storage renews no lease, and is the only live node.
    const isHere = storage.capabilities.exclusive && node === ownId();
    const seenAt = isHere ? now : details.seenAt;
    return {
      id: node,
      version,
      startedAt: startedAt === null ? null : rfc3339(startedAt),
      lastSeenAt: rfc3339(seenAt),
      lanes: lanes.map(({ lane, slots, running }) => ({ name: lane, slots, running })),
      state: stateOf(details, storage.capabilities.exclusive ? isHere : now - seenAt < LEASE_MS),
    };
  }

  return {
    async list() {
      return { nodes: (await storage.nodes.details()).map(toInfo) };
    },
  };
}

function stateOf({ dead, draining }: NodeDetails, isRenewed: boolean): NodeState {
  if (dead || !isRenewed) return "lost";
  return draining ? "draining" : "alive";
}
