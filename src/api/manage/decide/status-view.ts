/** `GET /api/status`: one line per slot, from the board alone, so that it never waits for anything. */
import type { z } from 'zod';
import type { BoardView } from '../../../reconciler/board.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { formatProblem } from '../../../schema/slot/spec-problem.ts';
import type { Condition, SlotStatus } from '../../../schema/status/slot-status.ts';
import type { SlotTraffic } from '../../../gateway/traffic/traffic.ts';
import type { SlotTotals } from '../../metrics/request-series.ts';
import type { Immutable } from '../../server/answer.ts';
import { answerOf } from './slot-view.ts';
import { SlotLine } from '../../../schema/status/slot-lists.ts';

/** `lineOf`: a function that may remember lines of unchanged slots. Pure, as long as `traffic` is. */
export function viewStatus(board: BoardView, traffic: (slot: SlotName) => LineTraffic, lineOf: LineOf = slotLine): readonly Line[] {
  const slots = [...board.slots.values()].map((entry) => lineOf(entry.status, traffic(entry.name)));
  const refused = [...board.refused]
    .filter(([name]) => !board.slots.has(name))
    .map(([name, problems]) => {
      const message = problems.map((problem) => formatProblem(problem)).join('; ');
      const conditions = [{ type: 'Ready', status: 'False', reason: 'SpecInvalid', message }] as const;
      return slotLine({ name, state: 'offline', conditions }, { inFlight: 0, parked: 0 });
    });
  return [...slots, ...refused].sort((a, b) => (a.name < b.name ? -1 : 1));
}

export type Line = Immutable<z.output<typeof SlotLine>>;

type LineFacts = Pick<SlotStatus, 'name' | 'state'> &
  Partial<Pick<SlotStatus, 'model' | 'provider' | 'backend'>> & {
    readonly conditions: readonly Pick<Condition, 'type' | 'status' | 'reason' | 'message'>[];
  };

/** `totals`: what its requests have generated. Default: there was no request. */
export type LineTraffic = SlotTraffic & { readonly totals?: Readonly<SlotTotals> | undefined };

export type LineOf = (slot: LineFacts, traffic: LineTraffic) => Line;

export function slotLine({ conditions, ...slot }: LineFacts, { inFlight, parked, progress, totals }: LineTraffic): Line {
  const { status, reason = '', message = '' } = conditions.find(({ type }) => type === 'Ready') ?? {};
  return answerOf(SlotLine, { ...slot, ready: status === 'True', reason, message, inFlight, parked, progress, totals });
}

/** The port of the companion chat page, if no proxy serves both under one host. */
const CHAT_PORT = 3001;
/** A host name or an address, with an optional port. Anything else in `Host` is an attack or a mistake. */
const HOST_HEADER = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?$/;

interface UrlFacts {
  readonly publicUrl: string | undefined;
  /** `SVC_CHAT_URL`: a chat page with an origin of its own. */
  readonly chatUrl: string | undefined;
  readonly hostHeader: string | undefined;
  /** The request came to a trusted proxy over TLS. */
  readonly secure: boolean;
  readonly authEnabled: boolean;
}

/** Returns undefined if the Host header is invalid. Pure. */
export function publicUrls(facts: UrlFacts) {
  const base = baseUrl(facts);
  if (base === undefined) return undefined;
  const root = `${base.origin}${base.pathname.replace(/\/+$/, '')}`;
  const proxied = facts.authEnabled || facts.publicUrl !== undefined;
  return {
    base_url: `${root}/`,
    openai_base_url: `${root}/v1`,
    api_url: `${root}/api`,
    dashboard_url: `${root}/`,
    chat_url: facts.chatUrl ?? (proxied ? `${root}/chat/` : `${base.protocol}//${base.hostname}:${CHAT_PORT}/`),
    source: facts.publicUrl === undefined ? 'host' : 'setting',
  } as const;
}

function baseUrl({ publicUrl, hostHeader, secure }: UrlFacts): URL | undefined {
  if (publicUrl !== undefined) return new URL(publicUrl);
  if (hostHeader === undefined || !HOST_HEADER.test(hostHeader)) return undefined;
  const text = `${secure ? 'https' : 'http'}://${hostHeader}`;
  return URL.canParse(text) ? new URL(text) : undefined;
}
