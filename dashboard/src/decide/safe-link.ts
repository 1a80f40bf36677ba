/** Which links of a model's answer can be followed. Pure. */

/** Undefined for anything but web and mail addresses: a link such as `javascript:` would run in the page. */
export function safeLink(href: string): string | undefined {
  const trimmed = href.trim();
  return /^(?:https?:\/\/|mailto:)/i.test(trimmed) ? trimmed : undefined;
}
