/** The frame of every page: navigation, connection state, drawer and dialogs. */
import type { JSX } from 'preact';
import { IS_MAC, useApp } from './app-context.ts';
import { hashOf, PAGES, type PageName } from './decide/route.ts';
import { SlotsPage } from './pages/slots.tsx';
import { Lazy } from './parts/lazy.tsx';
import { PAGE_NAMES, T } from './texts.ts';

/** Pages loaded on demand. */
const LOADERS: Readonly<Record<Exclude<PageName, 'slots'>, () => Promise<() => JSX.Element>>> = {
  models: async () => (await import('./pages/models.tsx')).ModelsPage,
  playground: async () => (await import('./pages/playground.tsx')).PlaygroundPage,
  activity: async () => (await import('./pages/activity.tsx')).ActivityPage,
  hardware: async () => (await import('./pages/hardware.tsx')).HardwarePage,
  settings: async () => (await import('./pages/settings.tsx')).SettingsPage,
};
const loadSignIn = async () => (await import('./pages/tokens.tsx')).SignIn;
const loadDrawer = async () => (await import('./slots/slot-drawer.tsx')).SlotDrawer;
const loadPalette = async () => (await import('./slots/command-palette.tsx')).CommandPalette;
const loadChange = async () => (await import('./slots/change-dialog.tsx')).ChangeDialog;

export function Shell(): JSX.Element {
  const { place, needsToken, change, palette } = useApp();
  const { page, slot } = place.value;
  return (
    <>
      <a class="skip" href="#content" onClick={skipToContent}>
        {T.skip}
      </a>
      <header class="top">
        <a class="brand" href={hashOf({ page: 'slots' })}>
          svc
        </a>
        <nav aria-label={T.mainNavigation}>
          {PAGES.map((name) => (
            <a key={name} href={hashOf({ page: name })} aria-current={name === page ? 'page' : undefined}>
              {PAGE_NAMES[name]}
            </a>
          ))}
        </nav>
        {!needsToken.value && <Connection />}
        {!needsToken.value && <Finder />}
      </header>
      <main id="content" tabIndex={-1}>
        {!needsToken.value && <CaptureNotice />}
        {needsToken.value ? (
          <Lazy key="sign-in" load={loadSignIn} />
        ) : page === 'slots' ? (
          <SlotsPage />
        ) : (
          <Lazy key={page} load={LOADERS[page]} />
        )}
      </main>
      {page === 'slots' && slot !== undefined && <Lazy load={loadDrawer} />}
      {palette.value && <Lazy load={loadPalette} />}
      {change.value !== undefined && <Lazy load={loadChange} />}
    </>
  );
}

/** Moves the focus itself, because the fragment of the URL selects the page. */
function skipToContent(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>('#content')?.focus();
}

/** Opens the command palette. `main.tsx` has its keys. */
function Finder(): JSX.Element {
  const { palette } = useApp();
  return (
    <button type="button" aria-keyshortcuts={IS_MAC ? 'Meta+K' : 'Control+K'} onClick={() => (palette.value = true)}>
      {T.find}&nbsp;<kbd>{IS_MAC ? '⌘K' : 'Ctrl K'}</kbd>
    </button>
  );
}

function Connection(): JSX.Element {
  const { store } = useApp();
  const freshness = store.freshness.value;
  return (
    <div class={`connection ${freshness}`} role="status">
      <span class="dot" aria-hidden="true" />
      <span>{T[freshness]}</span>
      {freshness === 'stale' && (
        <button type="button" class="quiet" onClick={() => store.retryNow()}>
          {T.tryNow}
        </button>
      )}
    </div>
  );
}

function CaptureNotice(): JSX.Element | undefined {
  const { store } = useApp();
  const captures = store.status.value?.captures ?? 0;
  return captures > 0 ? <p role="status">{T.capturing}</p> : undefined;
}
