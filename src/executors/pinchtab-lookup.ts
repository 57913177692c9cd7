import { type CallOptions, callOut } from "./call-out.ts";
import { failureOf, isSuccess } from "./http-answer.ts";
import { type Places, readInstances, readTabs } from "./pinchtab-places.ts";

/** A list of what is at hand takes a server no time; one that takes longer than this is not well. */
const LOOKUP_MS = 10_000;
/** Tens of thousands of tabs. */
const LIST_BYTES_MAX = 4 * 1_048_576;

export interface LookUpPlacesParams extends CallOptions {
  /** Of the PinchTab server, without a slash at its end. */
  readonly base: string;
  readonly signal: AbortSignal;
}

/** Asks a PinchTab server who has which tab, within a time of its own. */
export async function lookUpPlaces(params: LookUpPlacesParams): Promise<Places> {
  const { clock, signal } = params;
  const late = new AbortController();
  const timer = clock.setTimer(LOOKUP_MS, () =>
    late.abort(new Error(`the PinchTab server did not answer within ${LOOKUP_MS} ms`)),
  );
  const bounded = { ...params, signal: AbortSignal.any([signal, late.signal]) };
  try {
    // One after the other: the instance of a tab that is in the first answer was there before the second is given.
    const tabs = await getList("/instances/tabs", readTabs, bounded);
    const ports = await getList("/instances", readInstances, bounded);
    return { tabs, ports };
  } finally {
    timer.cancel();
  }
}

async function getList<List>(
  path: string,
  read: (answer: unknown) => List | null,
  params: LookUpPlacesParams,
): Promise<List> {
  const { base, headers = {}, signal } = params;
  const request = { method: "GET", headers, signal, bodyBytesMax: LIST_BYTES_MAX };
  const response = await callOut(base + path, request, params);
  if (!isSuccess(response)) throw failureOf(response, `GET ${path} answered HTTP`);
  if (response.truncated) throw new Error(`GET ${path} answered more than ${LIST_BYTES_MAX} bytes`);
  const list = read(parse(response.body));
  if (list === null) throw new Error(`GET ${path} answered something else than a list in JSON`);
  return list;
}

/** Undefined when it is not JSON, which is no list either. */
function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
