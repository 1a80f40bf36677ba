/** The addresses of the service for its users, as seen by the caller. */

/** The port of the companion chat page, if no proxy serves both under one host. */
const CHAT_PORT = 3001;
/** Matches a host name or an address, with an optional port; anything else in a Host header is an attack or a mistake. */
const HOST_HEADER = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?$/;

export interface UrlFacts {
  /** `SVC_PUBLIC_URL`. */
  readonly publicUrl: string | undefined;
  /** `SVC_CHAT_URL`: a chat page with an origin of its own. */
  readonly chatUrl: string | undefined;
  readonly hostHeader: string | undefined;
  /** Whether the request came to a trusted proxy over TLS. */
  readonly secure: boolean;
  readonly authEnabled: boolean;
}

/** Returns undefined if the Host header is invalid. Pure. */
export function publicUrls(facts: UrlFacts) {
  const base = baseUrl(facts);
  if (base === undefined) return undefined;
  const root = `${base.origin}${base.pathname.replace(/\/+$/, '')}`;
  const proxied = facts.authEnabled || facts.publicUrl !== undefined;
  return {
    base_url: `${root}/`,
    openai_base_url: `${root}/v1`,
    api_url: `${root}/api`,
    dashboard_url: `${root}/`,
    chat_url: facts.chatUrl ?? (proxied ? `${root}/chat/` : `${base.protocol}//${base.hostname}:${CHAT_PORT}/`),
    source: facts.publicUrl === undefined ? 'host' : 'setting',
  } as const;
}

function baseUrl({ publicUrl, hostHeader, secure }: UrlFacts): URL | undefined {
  if (publicUrl !== undefined) return new URL(publicUrl);
  if (hostHeader === undefined || !HOST_HEADER.test(hostHeader)) return undefined;
  const text = `${secure ? 'https' : 'http'}://${hostHeader}`;
  return URL.canParse(text) ? new URL(text) : undefined;
}
