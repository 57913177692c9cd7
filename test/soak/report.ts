import { formatTable } from "../../bench/report.ts";
import { judge, sparks } from "./curve.ts";
import { type Look, QUANTITIES, type QuantityName } from "./look.ts";

export interface SoakReport {
  readonly table: string;
  /** The names of the curves that did not stay level. */
  readonly faults: readonly string[];
}

/** A line for each quantity: its curve, the middles of its thirds, and what to think of it. */
export function reportLooks(looks: readonly Look[]): SoakReport {
  const faults: string[] = [];
  const rows = (Object.keys(QUANTITIES) as QuantityName[]).flatMap((key) => {
    const quantity = QUANTITIES[key];
    const values = looks.flatMap((each) => each[key] ?? []);
    if (values.length === 0) return [];
    const { verdict, thirds } = judge(quantity, values);
    if (verdict !== "level") faults.push(`${quantity.name}: ${verdict}`);
    const [first, , last] = thirds;
    const shown = thirds.map((value) => show(value, quantity.unit));
    return [[quantity.name, sparks(values), ...shown, change(first, last), verdict]];
  });
  const header = ["", "curve", "first third", "second", "last third", "change", ""];
  return {
    table: formatTable([header, ...rows], { numbers: (column) => column > 1 && column < 6 }),
    faults,
  };
}

function show(value: number, unit: string): string {
  const text = Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(1);
  return unit === "" || unit.startsWith("/") ? text + unit : `${text} ${unit}`;
}

function change(first: number, last: number): string {
  if (first === 0) return "";
  const percent = Math.round((last / first - 1) * 100);
  return `${percent > 0 ? "+" : ""}${percent} %`;
}
