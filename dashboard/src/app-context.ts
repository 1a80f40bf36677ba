/** The objects that all components share, created once in `main.tsx`. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Signal } from '@preact/signals';
import type { ChatMessage } from './decide/chat.ts';
import type { Place } from './decide/route.ts';
import type { Client } from './io/client.ts';
import type { Store } from './io/store.ts';
import { GRANTS, type Access } from '../../src/schema/words/access.ts';
import type { Plan, Scope, SwitchedProfile } from './types.ts';

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
  /** Where the effect of the change can be watched. Default: the page stays. */
  readonly watch?: Place;
  /** Rejects with status 409 if there is a newer version. */
  apply(client: Client, version: string | null): Promise<unknown>;
}

/** The chat of this tab, which outlives its page. */
export interface ConversationState {
  /** Undefined until the playground is opened. */
  readonly messages: Signal<readonly ChatMessage[] | undefined>;
  /** The response being streamed. */
  readonly answer: Signal<ChatMessage | undefined>;
  /** Ends the request of the response. */
  readonly running: Signal<AbortController | undefined>;
}

export interface App {
  readonly client: Client;
  readonly store: Store;
  readonly place: Signal<Place>;
  readonly change: Signal<Change | undefined>;
  readonly needsToken: Signal<boolean>;
  /** The command palette is open. */
  readonly palette: Signal<boolean>;
  /** What the user may do; undefined until the service has said it. */
  readonly scope: Signal<Scope | undefined>;
  readonly conversation: ConversationState;
  /** Milliseconds since 1970, updated every second. */
  readonly now: Signal<number>;
}

/** There, Ctrl+K belongs to the text fields. */
export const IS_MAC = navigator.userAgent.includes('Mac');

export const AppContext = createContext<App | undefined>(undefined);

/** Returns whether routes of an access answer the user. Everything is offered until the scope is known. */
export function useMay(): (access: Access) => boolean {
  const scope = useApp().scope.value;
  return (access) => scope === undefined || access === 'open' || GRANTS[scope].includes(access);
}

export function useApp(): App {
  const app = useContext(AppContext);
  if (app === undefined) throw new Error('useApp() is called outside "AppContext.Provider"');
  return app;
}
