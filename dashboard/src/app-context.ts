/** What every part of the page uses, created once in `main.tsx`. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Signal } from '@preact/signals';
import type { Place } from './decide/route.ts';
import type { Table } from './decide/patch.ts';
import type { Client } from './io/client.ts';
import type { Store } from './io/store.ts';

/** A change that is shown before it is made. */
export interface Change {
  readonly slot: string;
  readonly verb: 'load' | 'unload' | 'restart';
  /** What the verb does to the document, for the plan. */
  readonly patch: Table;
  readonly title: string;
  /** What is sent with the verb. */
  readonly body: Table;
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
  if (app === undefined) throw new Error('Render this part inside of "AppContext.Provider"');
  return app;
}
