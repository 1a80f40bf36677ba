/** One slot: the same card for each kind of model. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { formatAge, formatBytes, formatSeconds, secondsSince } from '../decide/format.ts';
import { hashOf, type SlotTab } from '../decide/route.ts';
import { canEdit, isWanted, needsPerson, waitsFor } from '../decide/slot-facts.ts';
import { sparklinePoints } from '../decide/sparkline.ts';
import { MOST_HISTORY, type SlotSignals } from '../io/store.ts';
import { STATE_MEANINGS, T, TAB_NAMES } from '../texts.ts';
import type { Slot } from '../types.ts';
import { DownloadBar } from './download-bar.tsx';
import { FactList, type NamedFact } from './fact-list.tsx';
import type { WatchNear } from './use-near.ts';
import { loadChange, restartChange, unloadChange } from './slot-actions.ts';

interface CardProps {
  readonly name: string;
  readonly signals: SlotSignals;
  /** Says when the card comes near to what is seen, or leaves it. */
  readonly watch: WatchNear;
  /** Drawn at once: it is among the first that are seen. */
  readonly isFirst: boolean;
}

/** A card that nobody sees is its name alone, and is not drawn when its slot changes. */
export function SlotCard({ name, signals, watch, isFirst }: CardProps): JSX.Element {
  const item = useRef<HTMLLIElement>(null);
  const [isNear, setNear] = useState(isFirst);
  useEffect(() => (item.current === null ? undefined : watch(item.current, setNear)), []);
  // What is not read here does not draw the card again.
  const slot = isNear ? signals.slot.value : undefined;
  const look = slot === undefined ? 'far' : `state-${slot.status.state}${needsPerson(slot) === undefined ? '' : ' alarmed'}`;
  return (
    <li ref={item} class={`card ${look}`} data-slot={name}>
      {slot === undefined ? (
        <h2>
          <a href={hashOf({ page: 'slots', slot: name })}>{name}</a>
        </h2>
      ) : (
        <CardContent slot={slot} signals={signals} />
      )}
    </li>
  );
}

function CardContent({ slot, signals }: Pick<CardProps, 'signals'> & { readonly slot: Slot }): JSX.Element {
  const { name, status } = slot;
  const alarm = needsPerson(slot);
  const waiting = alarm === undefined ? waitsFor(slot) : undefined;
  const { lastEvent } = signals;
  return (
    <>
      <header>
        <h2>
          <a href={hashOf({ page: 'slots', slot: name })}>{name}</a>
        </h2>
        <StateBadge slot={slot} />
      </header>
      {alarm !== undefined && (
        <p class="alarm">
          <strong>
            {T.needsYou}: {alarm.reason}
          </strong>{' '}
          {alarm.message}
        </p>
      )}
      <p class="model" title={status.model ?? ''}>
        {status.model ?? T.none}
        {status.wanted_model !== null && status.wanted_model !== status.model && <span> → {status.wanted_model}</span>}
      </p>
      {status.progress !== null && <DownloadBar progress={status.progress} />}
      <Facts signals={signals} />
      <Sparkline values={signals.history.value} />
      <p class={waiting === undefined ? 'last' : 'last waits'}>
        {waiting?.message ?? lastEvent.value?.message ?? STATE_MEANINGS[status.state]}
      </p>
      <Controls slot={slot} />
    </>
  );
}

function StateBadge({ slot: { status } }: { readonly slot: Slot }): JSX.Element {
  const { now } = useApp();
  const seconds = secondsSince(status.since, now.value);
  return (
    <p class="badge" title={STATE_MEANINGS[status.state]}>
      <span class="dot" aria-hidden="true" />
      <strong>{status.state}</strong>
      {seconds !== undefined && (
        <small>
          {T.since} {formatAge(seconds)}
        </small>
      )}
    </p>
  );
}

function Facts({ signals: { slot, line, rates } }: { readonly signals: SlotSignals }): JSX.Element {
  const { backend, memory_bytes: memory, restarts, replicas } = slot.value.status;
  const { firstTokenSeconds, tokensPerSecond } = rates.value ?? {};
  const facts: readonly NamedFact[] = [
    [T.backend, backend ?? T.none],
    [T.memory, memory === null ? T.none : formatBytes(memory)],
    [T.inFlight, String(line.value.in_flight)],
    [T.parked, String(line.value.parked)],
    [T.tokensPerSecond, tokensPerSecond === undefined ? T.none : tokensPerSecond.toFixed(tokensPerSecond < 10 ? 1 : 0)],
    [T.firstToken, firstTokenSeconds === undefined ? T.none : formatSeconds(firstTokenSeconds)],
    ...(replicas === null ? [] : [[T.replicas, T.replicasReady(replicas.ready, replicas.present)] as const]),
    ...(restarts > 0 ? [[T.restarts, String(restarts)] as const] : []),
  ];
  return <FactList facts={facts} />;
}

const CURVE = { width: 240, height: 32, most: MOST_HISTORY };

function Sparkline({ values }: { readonly values: readonly number[] }): JSX.Element | null {
  if (values.length < 2) return null;
  return (
    <svg class="sparkline" role="img" aria-label={T.sparkline} viewBox={`0 0 ${CURVE.width} ${CURVE.height}`} preserveAspectRatio="none">
      <polyline points={sparklinePoints(values, CURVE)} />
    </svg>
  );
}

const LINKS: readonly SlotTab[] = ['explain', 'timeline', 'logs', 'edit'];

function Controls({ slot }: { readonly slot: Slot }): JSX.Element {
  const { change } = useApp();
  const { name } = slot;
  return (
    <footer>
      {canEdit(slot) && (
        <div class="buttons" role="group" aria-label={`${T.actions}: ${name}`}>
          {isWanted(slot) ? (
            <button type="button" onClick={() => (change.value = unloadChange(name))}>
              {T.unload}
            </button>
          ) : (
            <button type="button" class="main" onClick={() => (change.value = loadChange(name))}>
              {T.load}
            </button>
          )}
          <button type="button" disabled={!isWanted(slot)} onClick={() => (change.value = restartChange(name))}>
            {T.restart}
          </button>
          <a class="button" href={hashOf({ page: 'models', slot: name })}>
            {T.changeModel}
          </a>
        </div>
      )}
      <nav class="links" aria-label={name}>
        {LINKS.map((tab) => (
          <a key={tab} href={hashOf({ page: 'slots', slot: name, tab })}>
            {TAB_NAMES[tab]}
          </a>
        ))}
      </nav>
    </footer>
  );
}
