/** The admission of slots as a waterfall chart, with the budget as a line. */
import type { JSX } from 'preact';
import { formatBytes } from '../decide/format.ts';
import { drawAdmission } from '../decide/memory-shares.ts';
import { hashOf } from '../decide/route.ts';
import { A, ADMISSION_REASONS } from '../texts-activity.ts';
import type { Explanation } from '../types.ts';

export function AdmissionChart({ memory }: { readonly memory: NonNullable<Explanation['memory']> }): JSX.Element | null {
  const drawn = drawAdmission(memory);
  if (drawn === undefined) return null;
  const share = (bytes: number): string => `${(bytes / drawn.wholeBytes) * 100}%`;
  return (
    <section class="admission">
      <h3>
        {A.allocation} ({drawn.memory})
      </h3>
      <p class="why">{A.allocationWhy}</p>
      <ol style={{ '--budget': share(drawn.budgetBytes) }}>
        {drawn.rows.map(({ slot, bytes, from, admitted, because, priority }) => (
          <li key={slot} class={admitted ? 'admitted' : 'waits'}>
            <a href={hashOf({ page: 'slots', slot })}>{slot}</a>
            <span class="lane">
              <span class="bar" aria-hidden="true" style={{ left: share(from), width: share(Math.min(bytes, drawn.wholeBytes - from)) }} />
            </span>
            <span>
              <strong>{admitted ? A.admitted : A.notAdmitted}</strong> {formatBytes(bytes)}
              <small>
                {ADMISSION_REASONS[because]}, {A.priority} {priority}
              </small>
            </span>
          </li>
        ))}
      </ol>
      <p class="why">
        {A.budget}: {formatBytes(drawn.budgetBytes)}
      </p>
    </section>
  );
}
