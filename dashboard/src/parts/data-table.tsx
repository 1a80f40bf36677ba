/** A table with a row of titles, which scrolls sideways on a narrow screen. */
import type { ComponentChildren, JSX } from 'preact';

interface DataTableProps {
  /** Names the region that scrolls, for screen readers. */
  readonly label: string;
  readonly titles: readonly string[];
  readonly numbers?: boolean;
  /** Rows. */
  readonly children: ComponentChildren;
  /** A last row that is no entry, such as a total. */
  readonly foot?: JSX.Element;
}

export function DataTable({ label, titles, numbers = false, children, foot }: DataTableProps): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class={numbers ? 'numbers' : undefined}>
        <thead>
          <tr>
            {titles.map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
        {foot !== undefined && <tfoot>{foot}</tfoot>}
      </table>
    </div>
  );
}
