/** The addresses of the pages: `#/slots/primary/logs`. They are behind "#", so that the service has one page to serve. Pure. */

export const PAGES = ['slots', 'models', 'playground', 'activity', 'settings'] as const;
export type PageName = (typeof PAGES)[number];

export const SLOT_TABS = ['explain', 'timeline', 'logs', 'edit'] as const;
export type SlotTab = (typeof SLOT_TABS)[number];

export interface Place {
  readonly page: PageName;
  /** The slot whose drawer is open; on the page of models, the one that gets another model. */
  readonly slot?: string;
  readonly tab?: SlotTab;
}

export function readPlace(hash: string): Place {
  const [first, slot, tab] = hash.replace(/^#\/?/, '').split('/').map(decode);
  const page = PAGES.find((name) => name === first) ?? 'slots';
  if (slot === undefined || slot === '') return { page };
  if (page === 'models') return { page, slot };
  if (page !== 'slots') return { page };
  return { page, slot, tab: SLOT_TABS.find((name) => name === tab) ?? 'explain' };
}

export function hashOf({ page, slot, tab }: Place): string {
  if (slot === undefined) return `#/${page}`;
  const path = `#/${page}/${encodeURIComponent(slot)}`;
  return page === 'slots' ? `${path}/${tab ?? 'explain'}` : path;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
