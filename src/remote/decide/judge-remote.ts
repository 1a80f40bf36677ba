/** Judges what a server on another machine says, whose answers are not trusted, and marks requests to it. Pure. */
import { z } from 'zod';
import { CAPABILITIES, type Capability } from '../../schema/slot/provider-kinds.ts';
import type { Readable } from '../../schema/words/failure.ts';
import type { WaitingReason } from '../../reconciler/ports.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { shorten } from '../../schema/words/nearest-word.ts';

/** A list of thousands of models. */
export const MOST_LIST_BYTES = 2 ** 20;

export type RemoteAnswer =
  | {
      readonly status: number;
      /** Target of a redirect. */
      readonly location?: string | undefined;
      /** Up to `MOST_LIST_BYTES`, and the beginning of longer ones. */
      readonly body: string;
      readonly isCut: boolean;
    }
  /** `isUntrusted`: nothing was sent. */
  | { readonly problem: string; readonly isUntrusted: boolean };

export type RemoteVerdict =
  /** `serves` undefined: it does not say. `slot`: the name there, whose own status says why it cannot answer now. */
  | { readonly kind: 'there'; readonly serves?: readonly Capability[]; readonly slot?: string }
  | { readonly kind: 'waiting'; readonly because: WaitingReason };

const Listed = z.object({ data: z.array(z.unknown()).optional(), models: z.array(z.unknown()).optional() });
const Named = z.object({ id: z.string() });
/** What services of this kind add. */
const OwnEntry = z.object({
  owned_by: z.literal('svc'),
  slots: z.array(z.object({ name: z.string().regex(/^[a-z0-9-]{1,40}$/), state: z.string().max(20) })).min(1),
  capabilities: z.array(z.string()).catch([]),
});
const SlotAnswer = z.object({
  status: z.object({ conditions: z.array(z.object({ type: z.string(), status: z.string(), message: z.string() })) }),
});

/** The model is being loaded, so that requests would only wait there instead of here. */
const LOADING: ReadonlySet<string> = new Set(['pulling', 'warming']);
/** It is not loaded: asked for never, or it cannot be. */
const AT_REST = 'offline';
const SHOWN_NAMES = 8;
const SHOWN_CHARACTERS = 60;
const MOST_MESSAGE = 500;

/** `url`: of the list. `name`: of the model there. */
export function judgeList(answer: RemoteAnswer, { url, name }: { readonly url: string; readonly name: string }): RemoteVerdict {
  if ('problem' in answer) return waiting(answer.isUntrusted ? 'RemoteUntrusted' : 'RemoteUnreachable', plain(answer.problem));
  const { status, body, isCut, location } = answer;
  if (status >= 300 && status < 400) {
    const target = location === undefined ? 'to nowhere' : `to "${plain(location)}"`;
    return waiting('RemoteUnusable', `"${url}" redirects ${target}, which is not followed: write the final address into "remote.url"`);
  }
  if (status === 401 || status === 403)
    return waiting('RemoteRefuses', `"${url}" answers with status ${status}: correct the token in the file of "remote.credential_file"`);
  if (status === 404) return waiting('RemoteUnusable', `There is no list of models at "${url}": correct the path of "remote.url"`);
  if (status !== 200) return waiting('RemoteUnreachable', `"${url}" answers with status ${status}`);
  if (isCut) return waiting('RemoteUnusable', `The list of models at "${url}" has more than ${MOST_LIST_BYTES} bytes`);
  return judgeEntries(body, { url, name });
}

function judgeEntries(body: string, { url, name }: Parameters<typeof judgeList>[1]): RemoteVerdict {
  const what = /^\s*</.test(body) ? 'a web page' : 'something';
  const list = Listed.safeParse(parseJson(body)).data;
  const entries = list?.data ?? list?.models;
  if (entries === undefined)
    return waiting('RemoteUnusable', `"${url}" answers with ${what} that is no list of models: correct "remote.url"`);
  const entry = entries.find((each) => Named.safeParse(each).data?.id === name) ?? entries.find((each) => slotOf(each, name) !== undefined);
  if (entry === undefined) return waiting('RemoteLacksModel', `"${url}" does not list the model "${name}"; ${describeNames(entries)}`);
  const slot = slotOf(entry, name);
  if (slot === undefined) return { kind: 'there' };
  if (LOADING.has(slot.state)) return waiting('RemoteLoading', `The slot "${slot.name}" of the remote is in state "${slot.state}"`);
  const serves = CAPABILITIES.filter((capability) => slot.capabilities.includes(capability));
  return { kind: 'there', ...(serves.length === 0 ? {} : { serves }), ...(slot.state === AT_REST ? { slot: slot.name } : {}) };
}

/** The slot of a service of this kind that answers to the name, or has it. Undefined for other servers. */
function slotOf(entry: unknown, name: string) {
  const own = OwnEntry.safeParse(entry).data;
  const named = own?.slots.find((slot) => slot.name === name) ?? (Named.safeParse(entry).data?.id === name ? own?.slots[0] : undefined);
  return own && named && { ...named, capabilities: own.capabilities };
}

/** Why the slot there does not answer, in its own words; undefined where it only rests, or may not be read. */
export function judgeSlot(answer: RemoteAnswer, slot: string): WaitingReason | undefined {
  const conditions =
    'problem' in answer || answer.status !== 200 ? [] : SlotAnswer.safeParse(parseJson(answer.body)).data?.status.conditions;
  const stalled = conditions?.find(({ type, status }) => type === 'Stalled' && status === 'True');
  return stalled && waitingFor('RemoteStalled', `The slot "${slot}" of the remote is stalled: ${plain(stalled.message)}`);
}

function describeNames(entries: readonly unknown[]): string {
  const names = entries.flatMap((each) => Named.safeParse(each).data?.id ?? []).filter((name) => /^[\x20-\x7e]+$/.test(name));
  const shown = names.slice(0, SHOWN_NAMES).map((name) => `"${shorten(name, SHOWN_CHARACTERS)}"`);
  if (shown.length === 0) return 'it lists none';
  return `it has ${shown.join(', ')}${names.length > shown.length ? ` and ${names.length - shown.length} more` : ''}`;
}

const waitingFor = (reason: WaitingReason['reason'], message: string): WaitingReason => ({ kind: 'other', reason, message });
const waiting = (...why: Parameters<typeof waitingFor>): RemoteVerdict => ({ kind: 'waiting', because: waitingFor(...why) });

/** Without control characters and other scripts, which may hide what a text says. */
const plain = (text: string): string => shorten(text.replace(/[^\x20-\x7e]+/g, ' ').trim(), MOST_MESSAGE);

/** Random names of the services that have passed a request on. */
const HOP_LINES = /^x-svc-hop:[ \t]*([^\r\n]*)\r\n/gim;
const MOST_HOPS = 4;

/** Another service has sent these header lines. */
export const isPassedOn = (lines: string): boolean => /^x-svc-hop:/im.test(lines);

/** Adds this service to the header lines of a request. Fails if it is in them, or if they name too many. */
export function addHop(lines: string, own: string): Readable<{ readonly lines: string }> {
  const hops = [...lines.matchAll(HOP_LINES)].flatMap(([, names = '']) => names.split(',').map((name) => name.trim()));
  if (hops.includes(own)) return { ok: false, problem: 'The request has been here before: slots of several services lead to each other' };
  if (hops.length >= MOST_HOPS)
    return { ok: false, problem: `The request was passed on by ${hops.length} services: name the last one instead` };
  return { ok: true, lines: `${lines.replace(HOP_LINES, '')}x-svc-hop: ${[...hops, own].join(', ')}\r\n` };
}

interface AnswerHead {
  readonly status: number;
  /** Name, value, name, value. */
  readonly headers: readonly string[];
}

/** Why an answer says something about this service, and not about its client. */
export function judgeRefusal({ status, headers }: AnswerHead): { readonly kind: 'unusable'; readonly message: string } | undefined {
  const message = whyRefused({ status, headers });
  return message === undefined ? undefined : { kind: 'unusable', message };
}

function whyRefused({ status, headers }: AnswerHead): string | undefined {
  if (status === 401 || status === 403 || status === 407)
    return `The remote refuses the token of this service with status ${status}: correct the file of "remote.credential_file"`;
  if (status < 300 || status >= 400) return undefined;
  const at = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'location');
  const target = at === -1 ? 'to nowhere' : `to "${plain(headers[at + 1] ?? '')}"`;
  return `The remote redirects ${target}, which is not followed: write the final address into "remote.url"`;
}
