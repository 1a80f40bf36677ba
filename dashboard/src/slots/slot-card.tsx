/** The card of a slot, the same for each kind of model. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useApp, useMay } from '../app-context.ts';
import { formatAge, formatBytes, formatSeconds, secondsSince } from '../decide/format.ts';
import { hashOf, TAB_ACCESS, type Place, type SlotTab } from '../decide/route.ts';
import {
  actionsOf,
  canEdit,
  fixOf,
  isEnabled,
  needsAttention,
  pendingProblem,
  restsOnDemand,
  toneOfSlot,
  whyOff,
} from '../decide/slot-facts.ts';
import { sparklinePoints } from '../decide/token-rates.ts';
import { messageOf } from '../io/client.ts';
import { MAX_HISTORY, type SlotSignals } from '../io/store.ts';
import { STATE_MEANINGS, T, TAB_NAMES } from '../texts.ts';
import { DownloadBar } from '../parts/download-bar.tsx';
import { FactList, type NamedFact } from '../parts/fact-list.tsx';
import type { WatchNear } from './long-list.ts';
import { useLoaded } from '../parts/use-loaded.tsx';
import { useSelector } from '../parts/use-selector.ts';
import type { Condition, Providers } from '../types.ts';
import { offersOf, restartChange } from './slot-actions.ts';

interface CardProps {
  readonly name: string;
  readonly signals: SlotSignals;
  /** Reports when the card comes near the viewport, and when it leaves. */
  readonly watch: WatchNear;
  /** The card is in the first viewport, so it is drawn at once. */
  readonly isFirst: boolean;
}

/**
 * Off-screen cards consist of their name only and ignore changes of their slot. Each part of a card reads its own
 * signals, so that an event redraws only the parts it changes.
 */
export function SlotCard({ name, signals, watch, isFirst }: CardProps): JSX.Element {
  const item = useRef<HTMLLIElement>(null);
  const isNear = useSignal(isFirst);
  useEffect(() => (item.current === null ? undefined : watch(item.current, (next) => (isNear.value = next))), []);
  // Signals that are not read here do not redraw the card.
  const { look, isBroken } = useSelector(() => {
    if (!isNear.value) return { look: 'far', isBroken: false };
    const slot = signals.slot.value;
    const alarm = needsAttention(slot);
    return { look: `state-${toneOfSlot(slot)}${alarm === undefined ? '' : ' alarmed'}`, isBroken: fixOf(alarm) === 'edit' };
  });
  return (
    <li ref={item} class={`card ${look}`} data-slot={name}>
      <header>
        <h2>
          {/* A text with a mistake opens in the editor. */}
          <a href={hashOf({ page: 'slots', slot: name, ...(isBroken ? { tab: 'edit' } : {}) })}>{name}</a>
        </h2>
        {isNear.value && <StateBadge signals={signals} />}
      </header>
      {isNear.value && <NearParts name={name} signals={signals} />}
    </li>
  );
}

type PartProps = Pick<CardProps, 'name' | 'signals'>;

function NearParts({ name, signals }: PartProps): JSX.Element {
  return (
    <>
      <Alarm name={name} signals={signals} />
      <Model signals={signals} />
      <Facts signals={signals} />
      <Sparkline signals={signals} />
      <LastLine signals={signals} />
      <Controls name={name} signals={signals} />
    </>
  );
}

type ReadProps = Pick<CardProps, 'signals'>;

function Alarm({ name, signals: { slot } }: PartProps): JSX.Element | null {
  const alarm = useSelector(() => needsAttention(slot.value));
  const model = useSelector(() => slot.value.status.wanted_model ?? slot.value.status.model);
  if (alarm === undefined) return null;
  return (
    <p class="alarm">
      <strong>
        {T.needsAttention}: {alarm.reason}
      </strong>{' '}
      {alarm.message} <Fix name={name} model={model} alarm={alarm} />
    </p>
  );
}

interface FixProps {
  readonly name: string;
  /** The model that the slot wants. */
  readonly model: string | null;
  readonly alarm: Condition;
}

/** What repairs the slot, or shows how. */
function Fix({ name, model, alarm }: FixProps): JSX.Element {
  const { client, change } = useApp();
  const [failure, setFailure] = useState('');
  const may = useMay();
  const fix = may('admin') ? fixOf(alarm) : 'explain';
  const accept = async (id: string): Promise<void> => {
    // Loaded on demand, with the list of models.
    const { acceptLicence } = await import('../pages/model-row.tsx');
    await acceptLicence(client, id).catch((error: unknown) => setFailure(messageOf(error)));
  };
  if (fix === 'licence' && model !== null)
    return (
      <>
        <button type="button" onClick={() => void accept(model)}>
          {T.acceptLicenceOf(model)}
        </button>
        {failure !== '' && <span role="alert">{failure}</span>}
      </>
    );
  if (fix === 'restart')
    return (
      <button type="button" onClick={() => (change.value = restartChange(name))}>
        {T.restart}
      </button>
    );
  const place: Place =
    fix === 'model' ? { page: 'models', slot: name } : { page: 'slots', slot: name, tab: fix === 'edit' ? 'edit' : 'explain' };
  return (
    <a class="button" href={hashOf(place)}>
      {fix === 'model' ? T.changeModel : TAB_NAMES[fix === 'edit' ? 'edit' : 'explain']}
    </a>
  );
}

function Model({ signals: { slot } }: ReadProps): JSX.Element {
  const { model, wanted, progress } = useSelector(() => {
    const { model: answering, wanted_model, progress: pull } = slot.value.status;
    return { model: answering, wanted: wanted_model, progress: pull };
  });
  return (
    <>
      <p class="model" title={model ?? ''}>
        {model ?? T.none}
        {wanted !== null && wanted !== model && <span> → {wanted}</span>}
      </p>
      {progress !== null && <DownloadBar progress={progress} />}
    </>
  );
}

function LastLine({ signals: { slot, lastEvent } }: ReadProps): JSX.Element {
  const waiting = useSelector(() => (needsAttention(slot.value) === undefined ? pendingProblem(slot.value)?.message : undefined));
  const last = useSelector(() => {
    const text = whyOff(slot.value) ?? lastEvent.value?.message ?? STATE_MEANINGS[slot.value.status.state];
    // An alarm is told once; the event of it may begin with the condition.
    const alarm = needsAttention(slot.value)?.message ?? '';
    return alarm !== '' && (alarm.includes(text) || text.includes(alarm)) ? '' : text;
  });
  const offProvider = useSelector(() => (isEnabled(slot.value) ? null : slot.value.status.provider));
  return (
    <>
      <p class={waiting === undefined ? 'last' : 'last waits'} title={waiting ?? last}>
        {waiting ?? last}
      </p>
      {offProvider !== null && <Lacking provider={offProvider} />}
    </>
  );
}

/** Why this machine cannot run the provider of a slot that is off, and what to install. */
function Lacking({ provider }: { readonly provider: string }): JSX.Element | null {
  const { client } = useApp();
  const loaded = useLoaded((signal) => client.fetchJson<Providers>('/api/providers', { signal }), [provider]);
  const found = loaded.kind === 'done' ? loaded.value.providers.find(({ kind }) => kind === provider) : undefined;
  return found === undefined || found.available ? null : <p class="last">{found.reason}</p>;
}

function StateBadge({ signals: { slot } }: ReadProps): JSX.Element {
  const { now } = useApp();
  const state = useSelector(() => slot.value.status.state);
  const rests = useSelector(() => restsOnDemand(slot.value));
  const age = useSelector(() => {
    const seconds = secondsSince(slot.value.status.since, now.value);
    return seconds === undefined ? undefined : formatAge(seconds);
  });
  return (
    <p class="badge" title={rests ? T.atRestMeaning : STATE_MEANINGS[state]}>
      <span class="dot" aria-hidden="true" />
      <strong>{rests ? T.atRest : state}</strong>
      {age !== undefined && <small>{age}</small>}
    </p>
  );
}

function Facts({ signals: { slot, line, rates } }: ReadProps): JSX.Element {
  const facts = useSelector<readonly NamedFact[]>(() => {
    const { backend, capabilities, memory_bytes: memory, restarts, replicas } = slot.value.status;
    const { firstTokenSeconds, tokensPerSecond } = rates.value ?? {};
    return [
      [T.backend, backend ?? T.none],
      [T.memory, memory === null ? T.none : formatBytes(memory)],
      [T.inFlight, String(line.value.in_flight)],
      [T.pending, String(line.value.parked)],
      ...(capabilities.includes('chat')
        ? ([
            [T.tokensPerSecond, tokensPerSecond === undefined ? T.none : tokensPerSecond.toFixed(tokensPerSecond < 10 ? 1 : 0)],
            [T.firstToken, firstTokenSeconds === undefined ? T.none : formatSeconds(firstTokenSeconds)],
          ] as const)
        : []),
      ...(replicas === null ? [] : [[T.replicas, T.replicasReady(replicas.ready, replicas.present)] as const]),
      ...(restarts > 0 ? [[T.restarts, String(restarts)] as const] : []),
    ];
  });
  return <FactList facts={facts} />;
}

const CURVE = { width: 240, height: 32, most: MAX_HISTORY };

function Sparkline({ signals: { history } }: ReadProps): JSX.Element | null {
  const values = history.value;
  if (values.length < 2) return null;
  return (
    <svg class="sparkline" role="img" aria-label={T.sparkline} viewBox={`0 0 ${CURVE.width} ${CURVE.height}`} preserveAspectRatio="none">
      <polyline points={sparklinePoints(values, CURVE)} />
    </svg>
  );
}

const LINKS: readonly SlotTab[] = ['explain', 'timeline', 'logs', 'edit'];

function Controls({ name, signals: { slot } }: PartProps): JSX.Element {
  const { change } = useApp();
  const may = useMay();
  const isEditable = useSelector(() => canEdit(slot.value)) && may('admin');
  const actions = useSelector(() => actionsOf(slot.value));
  return (
    <footer>
      {isEditable && (
        <div class="buttons" role="group" aria-label={`${T.actions}: ${name}`}>
          {offersOf(name, actions).map(({ label, make }) => (
            <button
              key={label}
              type="button"
              class={label === T.load ? 'main' : ''}
              disabled={make === undefined}
              onClick={() => (change.value = make?.())}
            >
              {label}
            </button>
          ))}
          <a class="button" href={hashOf({ page: 'models', slot: name })}>
            {T.changeModel}
          </a>
        </div>
      )}
      <nav class="links" aria-label={name}>
        {LINKS.filter((tab) => may(TAB_ACCESS[tab])).map((tab) => (
          <a key={tab} href={hashOf({ page: 'slots', slot: name, tab })}>
            {TAB_NAMES[tab]}
          </a>
        ))}
      </nav>
    </footer>
  );
}
