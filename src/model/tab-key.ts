const PREFIX = "tab:";

/** The concurrency key of what is done in one tab of a browser. */
export function tabKey(tabId: string): string {
  return `${PREFIX}${tabId}`;
}

/** The tab that a concurrency key stands for; undefined when it stands for something else. */
export function tabOf(key: string): string | undefined {
  return key.startsWith(PREFIX) ? key.slice(PREFIX.length) : undefined;
}
