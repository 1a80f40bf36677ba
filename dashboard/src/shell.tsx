/** The frame of every page: navigation, the state of the connection, and what lies above the page. */
import type { JSX } from 'preact';
import { useApp } from './app-context.ts';
import { hashOf, PAGES, type PageName } from './decide/route.ts';
import { ActivityPage } from './pages/activity.tsx';
import { ModelsPage } from './pages/models.tsx';
import { PlaygroundPage } from './pages/playground.tsx';
import { SettingsPage } from './pages/settings.tsx';
import { SlotsPage } from './pages/slots.tsx';
import { ChangeDialog } from './parts/change-dialog.tsx';
import { SignIn } from './parts/sign-in.tsx';
import { SlotDrawer } from './parts/slot-drawer.tsx';
import { PAGE_NAMES, T } from './texts.ts';

const PAGE_PARTS: Readonly<Record<PageName, () => JSX.Element>> = {
  slots: SlotsPage,
  models: ModelsPage,
  playground: PlaygroundPage,
  activity: ActivityPage,
  settings: SettingsPage,
};

export function Shell(): JSX.Element {
  const { place, needsToken } = useApp();
  const { page } = place.value;
  const Page = PAGE_PARTS[page];
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
        <Connection />
      </header>
      <main id="content" tabIndex={-1}>
        {needsToken.value ? <SignIn /> : <Page />}
      </main>
      <SlotDrawer />
      <ChangeDialog />
    </>
  );
}

/** The address after "#" is the page's, so the link moves the focus itself. */
function skipToContent(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>('#content')?.focus();
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
