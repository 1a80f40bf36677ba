/** The Slots page: a card for each slot. */
import type { ComponentChildren, JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { useApp, useMay } from '../app-context.ts';
import { cardsInView } from '../decide/pace.ts';
import { formatBytes } from '../decide/format.ts';
import { hashOf } from '../decide/route.ts';
import { matchesSearch, summarize } from '../decide/slot-facts.ts';
import { readView, writeView, type SlotView } from '../decide/slot-view.ts';
import type { SlotSignals } from '../io/store.ts';
import { Lazy } from '../parts/lazy.tsx';
import { SlotCard } from '../slots/slot-card.tsx';
import { useGrowing, useNear, type WatchNear } from '../slots/long-list.ts';
import { useSelector } from '../parts/use-selector.ts';
import { SearchField } from '../parts/fields.tsx';
import { PAGE_NAMES, T } from '../texts.ts';

const loadProfiles = async () => (await import('../slots/profile-bar.tsx')).ProfileBar;
const loadNewSlot = async () => (await import('../slots/new-slot.tsx')).NewSlot;
const loadTable = async () => (await import('../slots/slot-table.tsx')).SlotTable;
const loadFirstRun = async () => (await import('../slots/first-run.tsx')).FirstRun;

interface FilterProps {
  readonly view: SlotView;
  readonly search: string;
  readonly children: ComponentChildren;
}

/** Filters the slots by state or alarm. A click on the active filter clears it. */
function Filter({ view, search, children }: FilterProps): JSX.Element {
  const isActive = view.search === search;
  const query = writeView({ ...view, search: isActive ? '' : search });
  return (
    <a href={hashOf({ page: 'slots', query })} aria-current={isActive ? 'true' : undefined}>
      {children}
    </a>
  );
}

function SummaryLine({ view }: { readonly view: SlotView }): JSX.Element {
  const { store } = useApp();
  const { needAttention, states, memoryBytes } = useSelector(() =>
    summarize((store.names.value ?? []).flatMap((name) => store.of(name)?.slot.value ?? [])),
  );
  return (
    <ul class="summary">
      {needAttention > 0 && (
        <li class="needs">
          <Filter view={view} search="attention">
            {T.needAttention(needAttention)}
          </Filter>
        </li>
      )}
      {states.map(({ state, count }) => (
        <li key={state} class={`state-${state}`}>
          <Filter view={view} search={state}>
            <span class="dot" aria-hidden="true" />
            {count} {state === 'resting' ? T.atRest : state}
          </Filter>
        </li>
      ))}
      {memoryBytes > 0 && <li>{T.memoryReserved(formatBytes(memoryBytes))}</li>}
    </ul>
  );
}

/** Reads the freshness itself, so that a lost connection does not redraw the cards. */
function Grid({ children }: { readonly children: ComponentChildren }): JSX.Element {
  const { store } = useApp();
  const isStale = useSelector(() => store.freshness.value === 'stale');
  return <ul class={isStale ? 'grid stale' : 'grid'}>{children}</ul>;
}

/** 0 until there are cards. Reading the size of the window before the page has been drawn costs a layout of its own. */
function useCardsInView(hasCards: boolean): number {
  return useMemo(() => (hasCards ? cardsInView({ width: innerWidth, height: innerHeight }) : 0), [hasCards]);
}

/** So many cards are drawn in many steps. */
const LONG = 1000;

type CardOf = (name: string, signals: SlotSignals, isFirst: boolean) => JSX.Element;

/**
 * Keeps the element of each card: as the list grows or is sorted anew, those that are drawn are not compared again. An
 * element refers to the list that it was first drawn in, so those of a long list are made anew once all of it is drawn.
 */
function useCards(watch: WatchNear, isWhole: boolean): CardOf {
  return useMemo(() => {
    const kept = new WeakMap<SlotSignals, JSX.Element>();
    const create: CardOf = (name, signals, isFirst) => {
      const element = <SlotCard key={name} name={name} signals={signals} watch={watch} isFirst={isFirst} />;
      kept.set(signals, element);
      return element;
    };
    return (name, signals, isFirst) => {
      const last = kept.get(signals);
      return last?.props.isFirst === isFirst ? last : create(name, signals, isFirst);
    };
  }, [watch, isWhole]);
}

export function SlotsPage(): JSX.Element {
  const { store, place } = useApp();
  const may = useMay();
  const view = readView(place.value.query);
  const show = (more: Partial<SlotView>): void => {
    // At once, so that what is typed is not overtaken.
    place.value = { ...place.peek(), query: writeView({ ...view, ...more }) };
    location.replace(hashOf(place.peek()));
  };
  const watch = useNear();
  const names = store.names.value;
  const inView = useCardsInView(names !== undefined);
  const shown = (names ?? []).flatMap((name) => {
    const signals = store.of(name);
    if (signals === undefined) return [];
    // The table has a pace of its own.
    const isShown = (): boolean => matchesSearch(view.isTable ? signals.slot.peek() : signals.slot.value, view.search);
    return view.search === '' || isShown() ? [{ name, signals }] : [];
  });
  const drawn = useGrowing(names === undefined ? 0 : shown.length, inView);
  const cardOf = useCards(watch, drawn >= Math.max(shown.length, LONG));
  return (
    <>
      <div class="page-head">
        <h1>{PAGE_NAMES.slots}</h1>
        <SummaryLine view={view} />
      </div>
      <div class="slot-tools">
        <SearchField label={T.search} value={view.search} onValue={(search) => show({ search })} />
        <button type="button" class="quiet" aria-pressed={view.isTable} onClick={() => show({ isTable: !view.isTable })}>
          {T.asTable}
        </button>
        {names !== undefined && <Lazy load={loadProfiles} isQuiet />}
        {names !== undefined && may('admin') && <Lazy load={loadNewSlot} isQuiet />}
      </div>
      {names !== undefined && <Lazy load={loadFirstRun} isQuiet />}
      {store.failure.value !== '' && <p role="alert">{store.failure.value}</p>}
      {names === undefined && <p role="status">{T.loading}</p>}
      {names?.length === 0 && (
        <div class="panel">
          <h2>{T.noSlots}</h2>
          <p>{T.noSlotsHint}</p>
        </div>
      )}
      {view.search !== '' && shown.length === 0 && <p>{T.noMatch}</p>}
      {view.isTable ? (
        <Lazy load={loadTable} />
      ) : (
        <Grid>{shown.slice(0, drawn).map(({ name, signals }, index) => cardOf(name, signals, index < inView))}</Grid>
      )}
    </>
  );
}
