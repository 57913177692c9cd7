/** Where `rota serve` listens by default. */
export const DEFAULT_URL = "http://127.0.0.1:7682";

export interface ClientFlags {
  readonly url?: string | undefined;
  readonly key?: string | undefined;
}

export interface ClientAddress {
  readonly url: string;
  readonly key?: string;
  readonly taskToken?: string;
}

/**
 * The server and the key of a command: `ROTA_URL` and `ROTA_KEY` < flags. Rota sets `ROTA_TASK_TOKEN` in the programs that it runs:
 * their calls then count as made within the task. An empty variable counts as not set.
 */
export function clientAddress(
  flags: ClientFlags,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): ClientAddress {
  const url = withScheme(flags.url ?? (environment["ROTA_URL"] || DEFAULT_URL));
  const key = flags.key ?? (environment["ROTA_KEY"] || undefined);
  const taskToken = environment["ROTA_TASK_TOKEN"] || undefined;
  return { url, ...(key === undefined ? {} : { key }), ...(taskToken === undefined ? {} : { taskToken }) };
}

/** Accepts `localhost:7682`, `rota.example.com/path`, `:7682` and `7682`. Any other single word is no server. */
function withScheme(url: string): string {
  const [, port] = /^:?(\d{1,5})$/.exec(url) ?? [];
  if (port !== undefined) return `http://127.0.0.1:${port}`;
  return /^(?:localhost|[\w-]+(?=:\d)|[\w-]+(?:\.[\w-]+)+|\[[\da-f:.]+\])(?::\d{1,5})?(?:\/.*)?$/i.test(url)
    ? `http://${url}`
    : url;
}
