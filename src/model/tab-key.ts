const PREFIX = "tab:";

/** The concurrency key of actions in one tab of a browser. */
export function tabKey(tabId: string): string {
  return `${PREFIX}${tabId}`;
}

/** The tab of a concurrency key; undefined: it is not the key of a tab. */
export function tabOf(key: string): string | undefined {
  return key.startsWith(PREFIX) ? key.slice(PREFIX.length) : undefined;
}
