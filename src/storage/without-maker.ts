import type { Provenance } from "../model/provenance.ts";

/** The provenance of an audit entry without the names that callers chose: those of the agent and of the client. */
export function withoutMaker(provenance: string): string {
  const { createdBy, within } = JSON.parse(provenance) as Provenance;
  const { keyId, via } = createdBy;
  return JSON.stringify({ createdBy: { keyId, agentId: null, via }, within });
}
