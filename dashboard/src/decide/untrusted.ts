/** Reads values of unknown shape. Pure. */

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Undefined if `value` has no such key or index. */
export function at(value: unknown, key: string | number): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

/** An empty string for anything else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** An empty list for anything else. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Undefined for anything but web and mail addresses: a link such as `javascript:` would run in the page. */
export function safeLink(href: string): string | undefined {
  const trimmed = href.trim();
  return /^(?:https?:\/\/|mailto:)/i.test(trimmed) ? trimmed : undefined;
}
