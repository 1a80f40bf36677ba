/** Links to the parts of a page that has several. */
import type { JSX } from 'preact';
import { hashOf, type Place } from '../decide/route.ts';

interface PartTabsProps<Part extends NonNullable<Place['part']>> {
  readonly page: Place['page'];
  readonly label: string;
  readonly names: Readonly<Record<Part, string>>;
  readonly current: Part;
}

export function PartTabs<Part extends NonNullable<Place['part']>>({ page, label, names, current }: PartTabsProps<Part>): JSX.Element {
  const isPart = (name: string): name is Part => name in names;
  return (
    <nav class="tabs" aria-label={label}>
      {Object.keys(names)
        .filter(isPart)
        .map((part) => (
          <a key={part} href={hashOf({ page, part })} aria-current={part === current ? 'true' : undefined}>
            {names[part]}
          </a>
        ))}
    </nav>
  );
}
