import { isObject } from "../model/input/field-checks.ts";
import type { Layers } from "./layers.ts";
import type { LoadedConfig } from "./load.ts";
import { masked } from "./masked.ts";
import { OPTIONS } from "./options.ts";

/** One option, without secrets. */
export interface DescribedOption {
  /** Its path: `scheduler.maxInflight`. */
  readonly option: string;
  /** Null when it has none; secrets are masked. */
  readonly value: unknown;
  /** `default`, or the file, the variable or the flag that sets it. */
  readonly from: string;
}

/** Every option with its value and its source. Each lane and each agent is an option of its own. */
export function describeConfig({
  config,
  layers,
}: Pick<LoadedConfig, "config" | "layers">): DescribedOption[] {
  const paths = OPTIONS.map(({ path }) => path);
  const listed = new Set(paths.map((path) => path.join(".")));
  const lanes = Object.keys(config.lanes).map((lane) => ["lanes", lane]);
  const more = {
    lanes: lanes.filter((path) => !listed.has(path.join("."))),
    agents: agentPaths(config.agents),
  };
  const lastLane = paths.findLastIndex(([section]) => section === "lanes");
  return paths
    .flatMap((path, index) => {
      if (index === lastLane) return [path, ...more.lanes];
      return path.join(".") === "agents" && more.agents.length > 0 ? more.agents : [path];
    })
    .map((path) => describe(path, config, layers));
}

function agentPaths(agents: object): string[][] {
  return Object.keys(agents).map((id) => ["agents", id]);
}

function describe(path: readonly string[], config: unknown, layers: Layers): DescribedOption {
  const value = inShort(valueAt(path, config));
  return {
    option: path.join("."),
    value: value === undefined ? null : masked(value, path.at(-1)),
    from: valueAt(path, layers.values) === undefined ? "default" : layers.originOf(path),
  };
}

/** A lane without a `total` is written as a number. */
function inShort(value: unknown): unknown {
  if (!isObject(value) || Object.keys(value).join() !== "concurrency") return value;
  return value["concurrency"];
}

function valueAt(path: readonly string[], values: unknown): unknown {
  return path.reduce(
    (value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined),
    values,
  );
}
