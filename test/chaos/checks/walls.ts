import type { History } from "../history.ts";

/** No tenant sees an object of another, reaches it by its id, or is admitted without a key; and every valid key is accepted. */
export function walls({ views, events, knocks }: History): string[] {
  const findings: string[] = [];
  const ownerOf = new Map<string, string>();
  for (const { tenantId, things } of views) {
    for (const thing of things) {
      const owner = ownerOf.get(thing);
      if (owner !== undefined && owner !== tenantId)
        findings.push(`${thing} is shown to ${owner} and to ${tenantId}`);
      ownerOf.set(thing, tenantId);
    }
  }
  for (const { seq, tenantId } of events) {
    const shownTo = ownerOf.get(`event ${seq}`);
    if (shownTo !== undefined && shownTo !== tenantId)
      findings.push(`event ${seq} is of ${tenantId} and is shown to ${shownTo}`);
  }
  for (const { asked, expected, status } of knocks)
    if (status !== expected) findings.push(`${asked} was answered with ${status}, not with ${expected}`);
  return findings;
}
