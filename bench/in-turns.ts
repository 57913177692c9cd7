/**
 * Takes every measurement once, then every one again, and so on: whatever else the machine does meanwhile hits all of
 * them alike. Answers the runs of each, turn by turn.
 */
export async function inTurns<Name extends string>(
  turns: number,
  measurements: Readonly<Record<Name, () => Promise<number>>>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(measurements) as Name[];
  const runs = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, number[]>;
  for (let turn = 1; turn <= turns; turn++) {
    for (const name of names) {
      const value = await measurements[name]();
      runs[name].push(value);
      console.error(`  turn ${turn}: ${name} ${Math.round(value).toLocaleString("en")}`);
    }
  }
  return runs;
}
