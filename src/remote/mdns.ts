/**
 * Services on the local network, by DNS-SD over multicast DNS (RFC 6763, RFC 6762). The package `bonjour-service` is
 * loaded only where it is used. Whatever is found was written by strangers.
 */
import type { Bonjour } from 'bonjour-service';
import { messageOf } from '../platform/error-text.ts';

export interface Announcement {
  /** Unique on the network. */
  readonly name: string;
  readonly port: number;
  readonly txt: Readonly<Record<string, string>>;
}

export interface Announced extends Announcement {
  /** As announced, with or without `.local`. */
  readonly host: string;
  readonly addresses: readonly string[];
}

/** `_svc._tcp.local`. */
const TYPE = 'svc';

/** Announces until the signal aborts. The network may come and go; `onFault` hears of each failure. */
export async function announce(what: Announcement, onFault: (message: string) => void, signal: AbortSignal): Promise<void> {
  const bonjour = await open(onFault);
  const end = (): void => bonjour.unpublishAll(() => bonjour.destroy());
  bonjour.publish({ ...what, txt: { ...what.txt }, type: TYPE, probe: false });
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
}

/** Asks once, and collects responses for `ms`. Throws if the machine has no network. */
export async function browse(ms: number): Promise<readonly Announced[]> {
  let fault: string | undefined;
  const bonjour = await open((message) => (fault = message));
  const browser = bonjour.find({ type: TYPE });
  await new Promise((resolve) => setTimeout(resolve, ms));
  const found = browser.services.map(({ name, port, host, addresses = [], txt }) => ({ name, port, host, addresses, txt: textsOf(txt) }));
  browser.stop();
  bonjour.destroy();
  if (found.length === 0 && fault !== undefined) throw new Error(fault);
  return found;
}

async function open(onFault: (message: string) => void): Promise<Bonjour> {
  const { Bonjour: Opened } = await import('bonjour-service');
  return new Opened({}, (error: unknown) => onFault(messageOf(error)));
}

function textsOf(txt: unknown): Readonly<Record<string, string>> {
  if (typeof txt !== 'object' || txt === null) return {};
  return Object.fromEntries(Object.entries(txt).flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : [])));
}
