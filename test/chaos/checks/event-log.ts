import type { History } from "../history.ts";

/** Every event is in the log once and in order, and each stream delivered those of its tenant without a gap or a duplicate. */
export function eventLog({ events, followed }: History): string[] {
  const findings: string[] = [];
  const log = events.map(({ seq }) => seq);
  for (const [index, seq] of log.entries()) {
    const before = log[index - 1];
    if (before !== undefined && seq <= before)
      findings.push(`event ${seq} comes after event ${before} in the log`);
  }
  for (const [reader, { tenantId, seqs }] of followed.entries()) {
    const own = events.filter((event) => event.tenantId === tenantId).map(({ seq }) => seq);
    const handed = new Set(seqs);
    if (handed.size !== seqs.length) findings.push(`reader ${reader} was handed an event twice`);
    for (const [index, seq] of seqs.entries())
      if (index > 0 && seq < (seqs[index - 1] ?? 0))
        findings.push(`reader ${reader} was handed event ${seq} after event ${seqs[index - 1]}`);
    const missed = own.filter((seq) => !handed.has(seq));
    if (missed.length > 0)
      findings.push(`reader ${reader} was never handed events ${missed.slice(0, 5).join(", ")}`);
    const known = new Set(own);
    const invented = seqs.filter((seq) => !known.has(seq));
    if (invented.length > 0)
      findings.push(
        `reader ${reader} was handed events that are not in the log: ${invented.slice(0, 5).join(", ")}`,
      );
  }
  return findings;
}
