import { USER_AGENT } from "./call-headers.ts";
import { type CallOptions, callOut } from "./call-out.ts";
import { HttpError } from "./errors.ts";
import { failureOf, isSuccess } from "./http-answer.ts";
import { mergeHeaders } from "./merge-headers.ts";
import { readInstances, readTabs, type TabLocations } from "./pinchtab-locations.ts";

/** A server lists its tabs and instances at once. If it takes longer than this, it is not healthy. */
const LOOKUP_MS = 10_000;
/** Enough for tens of thousands of tabs. */
const LIST_BYTES_MAX = 4 * 1_048_576;

const TABS = "/instances/tabs";

export interface LookUpTabsParams extends CallOptions {
  /** The URL of the PinchTab server, without a slash at its end. */
  readonly base: string;
  readonly signal: AbortSignal;
  /** Whether the server must ask its instances instead of using its cache. */
  readonly fresh: boolean;
}

/** Asks a PinchTab server which instance has which tab, with a timeout of its own. */
export async function lookUpTabs(params: LookUpTabsParams): Promise<TabLocations> {
  const { clock, signal } = params;
  const late = new AbortController();
  const timer = clock.setTimer(LOOKUP_MS, () =>
    late.abort(new Error(`the PinchTab server did not respond within ${LOOKUP_MS} ms`)),
  );
  const bounded = { ...params, signal: AbortSignal.any([signal, late.signal]) };
  try {
    // In sequence: the instance of a listed tab existed before the second response, so that contains it.
    const tabs = params.fresh ? await getFreshTabs(bounded) : await getList(TABS, readTabs, bounded);
    const instances = await getList("/instances", readInstances, bounded);
    return { tabs, instances };
  } finally {
    timer.cancel();
  }
}

/** A server that does not know this request has no cache either. */
async function getFreshTabs(params: LookUpTabsParams): Promise<TabLocations["tabs"]> {
  try {
    return await getList(`${TABS}?fresh=1`, readTabs, params);
  } catch (error) {
    if (error instanceof HttpError && error.permanent) return getList(TABS, readTabs, params);
    throw error;
  }
}

async function getList<List>(
  path: string,
  read: (answer: unknown) => List | null,
  params: LookUpTabsParams,
): Promise<List> {
  const { base, signal } = params;
  const headers = mergeHeaders({ "user-agent": USER_AGENT }, params.headers);
  const request = { method: "GET", headers, signal, bodyBytesMax: LIST_BYTES_MAX };
  const response = await callOut(base + path, request, params);
  const question = `GET ${path.replace(/\?.*/, "")}`;
  if (!isSuccess(response)) throw failureOf(response, `${question} answered HTTP`);
  if (response.truncated) throw new Error(`${question} answered more than ${LIST_BYTES_MAX} bytes`);
  const list = read(parse(response.body));
  if (list === null) throw new Error(`${question} answered something else than a list in JSON`);
  return list;
}

/** Undefined if it is not JSON, and so not a list either. */
function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
