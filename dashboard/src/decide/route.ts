/** URLs of the pages: `#/slots/primary/logs`. They are fragments, so that the service serves a single page. Pure. */
import type { Access } from '../../../src/schema/words/access.ts';

export const PAGES = ['slots', 'models', 'playground', 'activity', 'hardware', 'settings'] as const;
export type PageName = (typeof PAGES)[number];

export const SLOT_TABS = ['explain', 'timeline', 'logs', 'history', 'edit'] as const;
export type SlotTab = (typeof SLOT_TABS)[number];

/** What each tab asks of the service. */
export const TAB_ACCESS: Readonly<Record<SlotTab, Access>> = {
  explain: 'read',
  timeline: 'read',
  logs: 'all',
  history: 'read',
  edit: 'admin',
};

/** Tabs of the pages that have them; the first is the default. */
export const PARTS = {
  playground: ['chat', 'compare', 'images', 'speak', 'transcribe', 'similarity', 'rerank'],
  activity: ['timeline', 'drift', 'requests', 'usage', 'changes', 'logs'],
} as const satisfies Partial<Record<PageName, readonly string[]>>;
export type PlaygroundPart = (typeof PARTS)['playground'][number];
export type ActivityPart = (typeof PARTS)['activity'][number];

export interface Place {
  readonly page: PageName;
  /**
   * Slots: the slot of the open drawer. Models: the slot that gets another model. Activity: the slot whose log is
   * shown.
   */
  readonly slot?: string;
  readonly tab?: SlotTab;
  readonly part?: PlaygroundPart | ActivityPart;
  /** Slots: how they are shown, as `slot-view.ts` reads it. */
  readonly query?: string;
}

export function readPlace(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const place = placeOf(path.split('/').map(decode));
  return query === '' || place.page !== 'slots' ? place : { ...place, query };
}

function placeOf([first, second, third]: readonly string[]): Place {
  const page = PAGES.find((name) => name === first) ?? 'slots';
  if (second === undefined || second === '') return { page };
  if (page === 'models') return { page, slot: second };
  if (page === 'slots') return { page, slot: second, tab: SLOT_TABS.find((name) => name === third) ?? 'explain' };
  if (page !== 'playground' && page !== 'activity') return { page };
  const part = PARTS[page].find((name) => name === second);
  if (part === undefined) return { page };
  return page === 'activity' && third !== undefined && third !== '' ? { page, part, slot: third } : { page, part };
}

export function hashOf({ page, slot, tab, part, query }: Place): string {
  const beginning = part === undefined ? `#/${page}` : `#/${page}/${part}`;
  const path = slot === undefined ? beginning : `${beginning}/${encodeURIComponent(slot)}`;
  const whole = page === 'slots' && slot !== undefined ? `${path}/${tab ?? 'explain'}` : path;
  return query === undefined || query === '' ? whole : `${whole}?${query}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
