/** The last change of a slot on a time axis, which grows while the change goes on. */
import type { JSX } from 'preact';
import { useApp } from '../app-context.ts';
import { formatSeconds, formatTime } from '../decide/format.ts';
import { lastChange } from '../decide/last-change.ts';
import { A } from '../texts-activity.ts';
import type { TimelineEntry } from '../types.ts';

/** `entries`: the oldest first. */
export function LastChange({ entries }: { readonly entries: readonly TimelineEntry[] }): JSX.Element | null {
  const { now } = useApp();
  const change = lastChange(entries, now.value);
  if (change === undefined) return null;
  const { at, seconds, isOver, phases, marks } = change;
  const duration = formatSeconds(seconds);
  return (
    <figure class="last-change">
      <figcaption>
        {isOver ? A.changeTook(duration) : A.changeTakes(duration)}, {formatTime(new Date(at).toISOString(), now.peek())}
      </figcaption>
      <div class="axis" aria-hidden="true">
        {phases.map((phase, index) => (
          <span key={index} class={`state-${phase.state}`} style={{ width: `${(phase.seconds / seconds) * 100}%` }} />
        ))}
        {marks.map(({ seq, kind, message, share }) => (
          <i key={seq} class={`kind-${kind}`} title={message} style={{ left: `${share * 100}%` }} />
        ))}
      </div>
      <ol class="legend">
        {phases.map((phase, index) => (
          <li key={index} class={`state-${phase.state}`}>
            {phase.state} {formatSeconds(phase.seconds)}
          </li>
        ))}
      </ol>
    </figure>
  );
}
