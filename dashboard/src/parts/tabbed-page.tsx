/** A page with tabs, the first of which is the default. */
import type { JSX } from 'preact';
import { useApp, useMay } from '../app-context.ts';
import { hashOf, type Place } from '../decide/route.ts';
import type { Access } from '../../../src/schema/words/access.ts';
import { PAGE_NAMES, T } from '../texts.ts';

interface TabbedPageProps<Part extends NonNullable<Place['part']>> {
  readonly page: Place['page'];
  readonly names: Readonly<Record<Part, string>>;
  readonly parts: Readonly<Record<Part, () => JSX.Element>>;
  /** What each tab asks of the service. Default: what every scope has. */
  readonly needs?: Readonly<Partial<Record<Part, Access>>>;
}

export function TabbedPage<Part extends NonNullable<Place['part']>>({ page, names, parts, needs }: TabbedPageProps<Part>): JSX.Element {
  const { place } = useApp();
  const isPart = (name: string | undefined): name is Part => name !== undefined && name in names;
  const may = useMay();
  const all = Object.keys(names)
    .filter(isPart)
    .filter((part) => may(needs?.[part] ?? 'any'));
  const current = all.find((part) => part === place.value.part) ?? all[0];
  const Shown: (() => JSX.Element) | undefined = current === undefined ? undefined : parts[current];
  return (
    <>
      <div class="page-head">
        <h1>{PAGE_NAMES[page]}</h1>
        <nav class="tabs" aria-label={PAGE_NAMES[page]}>
          {all.map((part) => (
            <a key={part} href={hashOf({ page, part })} aria-current={part === current ? 'true' : undefined}>
              {names[part]}
            </a>
          ))}
        </nav>
      </div>
      <div class={`tabbed ${page}`}>{Shown === undefined ? <p class="panel empty">{T.mayNot}</p> : <Shown key={current} />}</div>
    </>
  );
}
