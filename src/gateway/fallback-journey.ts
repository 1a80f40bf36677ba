/** The way of one request over the slots of a fallback (`route/decide/fall-back.ts`); created where one is declared. */
import type { RoutedSlot } from '../reconciler/board.ts';
import type { SlotName } from '../schema/words/names.ts';
import type { ExchangeDeps } from './exchange-deps.ts';
import { fallBack, splitOff, type FallbackFacts, type Move, type FallbackCause } from './route/decide/fall-back.ts';

type JourneyDeps = Pick<ExchangeDeps, 'board' | 'traffic'>;

export class FallbackJourney {
  readonly moves: Move[] = [];
  slot: SlotName;
  readonly #deps: JourneyDeps;
  readonly #facts: FallbackFacts;

  constructor(deps: JourneyDeps, asked: SlotName, isAble: FallbackFacts['isAble']) {
    const { holds, parking } = deps.traffic;
    this.#deps = deps;
    this.slot = asked;
    this.#facts = {
      isAble,
      load: (slot) => holds.inFlight(slot) + parking.waiting(slot),
      hasRoom: parking.hasRoom,
      isFull: holds.isFull,
    };
  }

  /** Undefined: never, because the slot has no fallback. */
  get leavesQueueAfterMs(): number | undefined {
    return this.#deps.board.current().slots.get(this.slot)?.spec.fallback?.loadingMs;
  }

  /** Splits the request off. `key`: decides, as `splitOff` says. */
  start(asked: RoutedSlot, key: string): RoutedSlot {
    const target = splitOff(asked, key, this.#deps.board.current(), this.#facts);
    if (target === undefined) return asked;
    this.#move(target, 'split');
    return target;
  }

  /** Moves to the slot that is returned. */
  next(cause: FallbackCause): RoutedSlot | undefined {
    const target = fallBack(cause, { slot: this.slot, moves: this.moves }, this.#deps.board.current(), this.#facts);
    if (target !== undefined) this.#move(target, cause.kind);
    return target;
  }

  headers(): Readonly<Record<string, string>> {
    const moves = this.moves.map(({ reason, from }) => `${reason}; from=${from}`).join(', ');
    return { 'x-svc-slot': this.slot, ...(moves === '' ? {} : { 'x-svc-fallback': moves }) };
  }

  #move({ name }: RoutedSlot, reason: Move['reason']): void {
    this.moves.push({ from: this.slot, to: name, reason });
    this.slot = name;
  }
}
