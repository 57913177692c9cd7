import type { NodeInfo, Nodes } from "../../interface/nodes.ts";
import { LEASE_MS, nodeState } from "../../model/node.ts";
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
      state: nodeState({
        ...details,
        isRenewed: storage.capabilities.exclusive ? isHere : now - seenAt < LEASE_MS,
      }),
    };
  }

  return {
    async list() {
      return { nodes: (await storage.nodes.details()).map(toInfo) };
    },
  };
}
