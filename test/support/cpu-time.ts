/** How long this process has computed for something, in milliseconds: unlike the time it took, no other process adds to it. */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
