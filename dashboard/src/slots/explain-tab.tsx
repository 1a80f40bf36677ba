/** The findings behind the state of a slot, its pods, its conditions and the memory it competes for. */
import { Fragment, type JSX } from 'preact';
import { useApp } from '../app-context.ts';
import { formatBytes } from '../decide/format.ts';
import { groupConditions, isNotable, toneOf } from '../decide/slot-facts.ts';
import { A } from '../texts-activity.ts';
import { T } from '../texts.ts';
import type { Explanation } from '../types.ts';
import { SlotPods } from './pods.tsx';
import { LoadStatus, useLoaded } from '../parts/use-loaded.tsx';

export function ExplainTab({ name }: { readonly name: string }): JSX.Element {
  const { client, store } = useApp();
  const slot = store.of(name)?.slot.value;
  const notable = groupConditions((slot?.status.conditions ?? []).filter(isNotable));
  const loaded = useLoaded(
    (signal) => client.fetchJson<Explanation>(`/api/slots/${encodeURIComponent(name)}/explain`, { signal }),
    [name, slot],
  );
  return (
    <div class="tab">
      <LoadStatus loaded={loaded} />
      {loaded.kind === 'done' && (
        <>
          {loaded.value.problems.length > 0 && (
            <section class="alarm">
              <h3>{T.invalid}</h3>
              <ul>
                {loaded.value.problems.map((problem) => (
                  <li key={problem}>{problem}</li>
                ))}
              </ul>
            </section>
          )}
          <pre tabIndex={0}>{loaded.value.text}</pre>
          {loaded.value.memory !== null && <MemoryPart memory={loaded.value.memory} />}
        </>
      )}
      <SlotPods slot={name} changed={slot} />
      <h3>{T.conditions}</h3>
      {notable.length === 0 && <p>{T.noProblems}</p>}
      <ul class="conditions">
        {notable.map(({ types, reason, message }) => (
          <li key={`${reason} ${message}`}>
            {types.map(({ type, status }) => (
              <Fragment key={type}>
                <strong>{type}</strong> <span class={`tag ${toneOf({ type, status })}`}>{status}</span>{' '}
              </Fragment>
            ))}
            {reason}
            {message !== '' && <p>{message}</p>}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Shares of the scarce memory: other programs, slots with precedence, and this slot. */
function MemoryPart({ memory }: { readonly memory: NonNullable<Explanation['memory']> }): JSX.Element | null {
  const { short } = memory;
  if (short === null) return null;
  const parts = [
    { kind: 'others', name: A.otherPrograms, bytes: short.others_bytes },
    { kind: 'promised', name: A.otherSlots, bytes: short.promised_bytes },
    { kind: 'own', name: A.thisSlot, bytes: short.bytes },
  ];
  // What other programs use is a part of the budget.
  const whole = Math.max(
    1,
    short.budget_bytes,
    parts.reduce((sum, { bytes }) => sum + bytes, 0),
  );
  return (
    <section>
      <h3>
        {T.memoryBudget} ({short.memory}): {formatBytes(short.budget_bytes)}
      </h3>
      <div class="memory-bar" aria-hidden="true">
        {parts.map(({ kind, bytes }) => (
          <span key={kind} class={kind} style={{ width: `${(bytes / whole) * 100}%` }} />
        ))}
      </div>
      <ul class="legend">
        {parts.map(({ kind, name, bytes }) => (
          <li key={kind} class={kind}>
            {name}: {formatBytes(bytes)}
          </li>
        ))}
      </ul>
    </section>
  );
}
