import { USER_AGENT } from "./call-headers.ts";
import { type CallOptions, callOut } from "./call-out.ts";
import { HttpError } from "./errors.ts";
import { failureOf, isSuccess } from "./http-answer.ts";
import { mergeHeaders } from "./merge-headers.ts";
import { type Places, readInstances, readTabs } from "./pinchtab-places.ts";

/** A list of what is at hand takes a server no time; one that takes longer than this is not well. */
const LOOKUP_MS = 10_000;
/** Tens of thousands of tabs. */
const LIST_BYTES_MAX = 4 * 1_048_576;

const TABS = "/instances/tabs";

export interface LookUpPlacesParams extends CallOptions {
  /** Of the PinchTab server, without a slash at its end. */
  readonly base: string;
  readonly signal: AbortSignal;
  /** Whether the server is to look at its instances instead of answering what it remembers of them. */
  readonly fresh: boolean;
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
    const tabs = params.fresh ? await getFreshTabs(bounded) : await getList(TABS, readTabs, bounded);
    const instances = await getList("/instances", readInstances, bounded);
    return { tabs, instances };
  } finally {
    timer.cancel();
  }
}

/** A server that does not know how to be asked so remembers nothing either. */
async function getFreshTabs(params: LookUpPlacesParams): Promise<Places["tabs"]> {
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
  params: LookUpPlacesParams,
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

/** Undefined when it is not JSON, which is no list either. */
function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
