/** Selects the slot that a playground form uses, and shows its state. */
import type { ComponentChildren, JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { ableFirst } from '../decide/slot-facts.ts';
import { hashOf } from '../decide/route.ts';
import { SelectField } from '../parts/fields.tsx';
import { DownloadBar } from '../parts/download-bar.tsx';
import { STATE_MEANINGS, T } from '../texts.ts';
import { NO_SLOT, P } from '../texts-playground.ts';
import type { Capability } from '../types.ts';

export interface SlotChoice {
  readonly capability: Capability;
  readonly slots: readonly string[];
  /** The same; those that cannot answer before a user does something come last. */
  readonly ranked: readonly string[];
  /** Empty if no slot has the capability. */
  readonly slot: string;
  readonly choose: (slot: string) => void;
}

export function useSlotChoice(capability: Capability): SlotChoice {
  const { store } = useApp();
  const [chosen, choose] = useState('');
  const slots = (store.names.value ?? []).filter((name) => store.of(name)?.slot.value.status.capabilities.includes(capability) === true);
  // As they were: what is preselected does not change while somebody writes.
  const ranked = useMemo(() => ableFirst(slots, (name) => store.of(name)?.slot.peek()), [slots.toSorted().join(' ')]);
  return { capability, slots, ranked, slot: slots.includes(chosen) ? chosen : (ranked[0] ?? ''), choose };
}

interface SlotBarProps {
  readonly choice: SlotChoice;
  readonly children?: ComponentChildren;
}

/** The selection, with the state of the slot: a first request may wait for a model to load. */
export function SlotBar({ choice: { capability, slots, slot, choose }, children }: SlotBarProps): JSX.Element | null {
  const { store } = useApp();
  if (store.names.value === undefined) return <p role="status">{T.loading}</p>;
  const status = store.of(slot)?.slot.value.status;
  if (status === undefined)
    return (
      <div class="panel empty">
        <p>{NO_SLOT[capability]}</p>
        <a class="button" href={hashOf({ page: 'models' })}>
          {T.browseModels}
        </a>
      </div>
    );
  return (
    <div class="slot-bar">
      <SelectField label={P.slot} value={slot} options={slots} onValue={choose} isInline />
      <span class={`pill state-${status.state}`} title={STATE_MEANINGS[status.state]}>
        <span class="dot" aria-hidden="true" />
        {status.state}
      </span>
      <code>{status.model}</code>
      {children}
    </div>
  );
}

/** Progress of the slot while a request is pending. */
export function Waiting({ slot }: { readonly slot: string }): JSX.Element {
  const { store } = useApp();
  const status = store.of(slot)?.slot.value.status;
  const steps = store.of(slot)?.line.value.progress;
  const isLoading = status !== undefined && !['ready', 'serving', 'idle'].includes(status.state);
  return (
    <div class="waiting" role="status">
      <p class="why">{isLoading ? `${P.pending}: ${STATE_MEANINGS[status.state]}` : P.processing}</p>
      {status?.progress !== null && status?.progress !== undefined && <DownloadBar progress={status.progress} />}
      {steps !== null && steps !== undefined && (
        <div class="download">
          <progress aria-label={P.processing} max={steps.total} value={steps.done} />
          <small>{P.step(steps.done, steps.total)}</small>
        </div>
      )}
    </div>
  );
}
