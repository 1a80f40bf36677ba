/** The objects that all components share, created once in `main.tsx`. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Signal } from '@preact/signals';
import type { Place } from './decide/route.ts';
import type { Client } from './io/client.ts';
import type { Store } from './io/store.ts';
import type { Plan, SwitchedProfile } from './types.ts';

/** The plan of a change, and the resource version that it is based on. */
export interface PlannedChange {
  readonly plan: Plan;
  readonly version: string | null;
  /** Result for each slot, if the change spans several. */
  readonly slots?: SwitchedProfile['slots'];
}

/** A change whose plan is shown before it is applied. */
export interface Change {
  readonly title: string;
  /** Message if the resource has changed since the plan was made. */
  readonly conflict: string;
  plan(client: Client, signal: AbortSignal): Promise<PlannedChange>;
  /** Rejects with status 409 if there is a newer version. */
  apply(client: Client, version: string | null): Promise<unknown>;
}

export interface App {
  readonly client: Client;
  readonly store: Store;
  readonly place: Signal<Place>;
  readonly change: Signal<Change | undefined>;
  readonly needsToken: Signal<boolean>;
  /** Milliseconds since 1970, updated every second. */
  readonly now: Signal<number>;
}

export const AppContext = createContext<App | undefined>(undefined);

export function useApp(): App {
  const app = useContext(AppContext);
  if (app === undefined) throw new Error('useApp() is called outside "AppContext.Provider"');
  return app;
}
