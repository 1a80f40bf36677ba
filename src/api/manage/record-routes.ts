/** Requests that this gateway answers and has answered, and who changed what. */
import { z } from 'zod';
import { Changes } from '../../schema/status/resource-answers.ts';
import { RequestEntries } from '../../schema/status/slot-lists.ts';
import { SlotName } from '../../schema/words/names.ts';
import { ApiError, empty, json } from '../server/answer.ts';
import { defineRoute, type DocumentedRoute } from '../server/define-route.ts';
import { viewRequests } from './decide/request-view.ts';
import type { ManageDeps } from './manage-deps.ts';
import { MOST_RECENT, MOST_TROUBLED } from './request-record.ts';

const MOST_REQUESTS = MOST_RECENT + MOST_TROUBLED;
/** As the gateway reads the header. */
const MOST_ID = 128;
const Switch = z.enum(['0', '1', 'true', 'false']).default('0');
const isOn = (text: z.output<typeof Switch>): boolean => text === '1' || text === 'true';

const RequestsQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(MOST_REQUESTS).default(100).describe('Number of requests at most'),
  slot: SlotName.optional().describe('Only requests that this slot answered'),
  caller: z.string().max(300).optional().describe('Only requests of this caller, such as "token:1a2b3c4d"'),
  failed: Switch.describe('1: only requests that have failed'),
  slow: Switch.describe('1: only requests that were slow; with "failed=1", those that have failed or were slow'),
  after: z.coerce.number().int().min(0).optional().describe('Only requests that ended since the answer with this "last"'),
});

const ChangesQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(1000).default(100).describe('Number of changes at most'),
  since: z.iso.datetime({ offset: true }).optional().describe('Only changes from then on'),
  by: z.string().max(300).optional().describe('Only changes by this name, or by this caller, such as "token:1a2b3c4d"'),
});

export function createRecordRoutes({ manage, requests, running, changes }: ManageDeps): readonly DocumentedRoute[] {
  return [
    defineRoute('GET', '/api/requests', 'all', {
      tag: 'inventory',
      summary: `The inference requests that this gateway answers now, the last ${MOST_RECENT}, and the last ${MOST_TROUBLED} that have failed or were slow; not what they contained`,
      input: z.object({ query: RequestsQuery }),
      answers: { 200: json('Requests that have ended, and those that have not', RequestEntries) },
      async handler({ query: { failed, slow, ...filter } }) {
        const { entries } = manage.events.since(0);
        const all = { ended: requests.list(), running: await running.list() };
        return { status: 200, body: viewRequests(all, entries, { ...filter, failed: isOn(failed), slow: isOn(slow) }) };
      },
    }),
    defineRoute('DELETE', '/api/requests/:id', 'admin', {
      tag: 'inventory',
      summary: 'Cancels a request that this gateway answers, or that waits: its client gets an error, and its server stops computing',
      input: z.object({ params: z.object({ id: z.string().min(1).max(MOST_ID).describe('Its "X-Request-ID"') }) }),
      answers: { 204: empty('It is cancelled') },
      errors: ['request.not_found'],
      async handler({ params: { id } }) {
        if (await running.cancel(id)) return { status: 204, body: undefined };
        throw new ApiError('request.not_found', `No request "${id}" runs on this gateway: it may have ended`);
      },
    }),
    defineRoute('GET', '/api/audit', 'admin', {
      tag: 'inventory',
      summary: 'Who changed what through this API: the last 1000 changes, in a cluster those that this replica has made since it started',
      input: z.object({ query: ChangesQuery }),
      answers: { 200: json('Changes, the newest first', Changes) },
      async handler({ query: { limit, since = '', by } }) {
        const from = since === '' ? Number.NEGATIVE_INFINITY : Date.parse(since);
        const found = (await changes.list()).filter(
          ({ at, who, caller }) => Date.parse(at) >= from && (by === undefined || who === by || caller === by),
        );
        return { status: 200, body: { changes: found.slice(-limit).toReversed() } };
      },
    }),
  ];
}
