/** Starts the dashboard. */
import { effect, signal } from '@preact/signals';
import { render } from 'preact';
import { AppContext, IS_MAC, type App, type Change } from './app-context.ts';
import { Shell } from './shell.tsx';
import { applyTheme } from './parts/theme-field.tsx';
import { readPlace } from './decide/route.ts';
import { createClient } from './io/client.ts';
import { createStore } from './io/store.ts';
import type { AuthStatus, Scope } from './types.ts';
import './styles/tokens.css';
import './styles/controls.css';
import './styles/frame.css';
import './styles/cards.css';
import './styles/dialogs.css';
import './styles/pages.css';
import './styles/playground.css';

const SECOND_MS = 1000;

function start(root: Element): void {
  const needsToken = signal(false);
  const client = createClient(() => (needsToken.value = true));
  const place = signal(readPlace(location.hash));
  const palette = signal(false);
  const now = signal(Date.now());
  const scope = signal<Scope | undefined>(undefined);
  const app: App = {
    client,
    store: createStore(client),
    place,
    change: signal<Change | undefined>(undefined),
    needsToken,
    palette,
    scope,
    conversation: { messages: signal(undefined), answer: signal(undefined), running: signal(undefined) },
    now,
  };
  // At the start, and after each sign-in.
  effect(() => {
    if (needsToken.value) return;
    client.fetchJson<AuthStatus>('/api/auth/status').then(
      (status) => (scope.value = status.scope ?? undefined),
      () => undefined,
    );
  });
  window.addEventListener('hashchange', () => (place.value = readPlace(location.hash)));
  window.addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() !== 'k' || !(IS_MAC ? event.metaKey : event.ctrlKey) || needsToken.peek()) return;
    event.preventDefault();
    palette.value = !palette.peek();
  });
  setInterval(() => {
    if (!document.hidden) now.value = Date.now();
  }, SECOND_MS);
  render(
    <AppContext.Provider value={app}>
      <Shell />
    </AppContext.Provider>,
    root,
  );
}

applyTheme();
const root = document.querySelector('#app');
if (root !== null) start(root);
