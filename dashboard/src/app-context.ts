/** What every part of the page uses, created once in `main.tsx`. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Signal } from '@preact/signals';
import type { Place } from './decide/route.ts';
import type { Client } from './io/client.ts';
import type { Store } from './io/store.ts';
import type { Plan, SwitchedProfile } from './types.ts';

/** What a change would do, and the version that this was found for. */
export interface PlannedChange {
  readonly plan: Plan;
  readonly version: string | null;
  /** What is done with the text of each slot, where several are changed. */
  readonly slots?: SwitchedProfile['slots'];
}

/** A change that is shown before it is made. */
export interface Change {
  readonly title: string;
  /** Said if somebody else has changed what it was planned for. */
  readonly conflict: string;
  plan(client: Client, signal: AbortSignal): Promise<PlannedChange>;
  /** Makes it, unless there is a newer version. */
  apply(client: Client, version: string | null): Promise<unknown>;
}

export interface App {
  readonly client: Client;
  readonly store: Store;
  readonly place: Signal<Place>;
  readonly change: Signal<Change | undefined>;
  readonly needsToken: Signal<boolean>;
  /** Milliseconds since 1970, once a second. */
  readonly now: Signal<number>;
}

export const AppContext = createContext<App | undefined>(undefined);

export function useApp(): App {
  const app = useContext(AppContext);
  if (app === undefined) throw new Error('useApp() is called outside "AppContext.Provider"');
  return app;
}
