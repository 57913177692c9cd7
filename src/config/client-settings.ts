/** Where `rota serve` listens unless told otherwise. */
export const DEFAULT_URL = "http://127.0.0.1:7682";

export interface ClientFlags {
  readonly url?: string | undefined;
  readonly key?: string | undefined;
}

export interface ClientAddress {
  readonly url: string;
  readonly key?: string;
}

/** Where a command finds the server: `ROTA_URL` and `ROTA_KEY` < flags. An empty variable counts as not set. */
export function clientAddress(
  flags: ClientFlags,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): ClientAddress {
  const url = flags.url ?? (environment["ROTA_URL"] || DEFAULT_URL);
  const key = flags.key ?? (environment["ROTA_KEY"] || undefined);
  return { url, ...(key === undefined ? {} : { key }) };
}
