/** Divides a whole as a sample of it is: exactly where the sample is the whole, else by estimate; the parts add up to the whole. */
export function divide<Name extends string>(
  whole: number,
  sample: Readonly<Record<Name, number>>,
): Record<Name, number> {
  const names = Object.keys(sample) as Name[];
  const looked = names.reduce((sum, name) => sum + sample[name], 0);
  const parts = names.map((name) => (looked === 0 ? 0 : Math.floor((sample[name] / looked) * whole)));
  const largest = parts.indexOf(Math.max(...parts));
  const rest = whole - parts.reduce((sum, part) => sum + part, 0);
  return Object.fromEntries(
    names.map((name, index) => [name, (parts[index] ?? 0) + (index === largest ? rest : 0)]),
  ) as Record<Name, number>;
}
