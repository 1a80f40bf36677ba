/** Logs, timeline and explanation of one slot. */
import { Readable } from 'node:stream';
import { z } from 'zod';
import type { SlotName } from '../../schema/names.ts';
import { formatProblem } from '../../schema/spec-problem.ts';
import type { Route } from '../route.ts';
import { viewTimelineEntry } from './decide/timeline-view.ts';
import { noSuchSlot } from './edit-outcome.ts';
import type { ManageDeps } from './manage-deps.ts';
import { queryOf, slotNameOf } from './request-input.ts';

const LogsQuery = z.strictObject({
  follow: z.enum(['0', '1', 'true', 'false']).default('0').describe('1: stay connected and send new lines as they appear'),
  tail: z.coerce.number().int().min(0).max(100_000).default(200).describe('Number of lines to start with, from the end'),
});
const TimelineQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(10_000).default(100).describe('Number of newest entries'),
});

export function createSlotInsightRoutes(deps: ManageDeps): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/api/slots/:name/logs',
      access: 'all',
      tag: 'slots',
      summary:
        'Output of the slot’s workload as text/plain; with the header "x-svc-workload" if there is no workload: "ended" before the last lines of the one that failed, else "none"',
      schemas: { query: LogsQuery },
      async handler(request, reply) {
        const name = await existingSlot(deps, slotNameOf(request));
        const query = queryOf(request, LogsQuery);
        const options = { tail: query.tail, follow: query.follow === '1' || query.follow === 'true' };
        const gone = new AbortController();
        reply.raw.once('close', () => gone.abort());
        const lines = await deps.manage.logs(name, options, AbortSignal.any([gone.signal, deps.stopping]));
        void reply.type('text/plain; charset=utf-8').header('x-accel-buffering', 'no');
        if (lines === undefined) {
          const ended = query.tail === 0 ? [] : (deps.board.current().slots.get(name)?.lastLog ?? []).slice(-query.tail);
          return reply.header('x-svc-workload', ended.length === 0 ? 'none' : 'ended').send(ended.map((line) => `${line}\n`).join(''));
        }
        return reply.send(Readable.from(textOf(lines), { objectMode: false }));
      },
    },
    {
      method: 'GET',
      path: '/api/slots/:name/timeline',
      access: 'read',
      tag: 'slots',
      summary: 'What happened to the slot and why, oldest first',
      schemas: { query: TimelineQuery },
      async handler(request) {
        const name = await existingSlot(deps, slotNameOf(request));
        const { limit } = queryOf(request, TimelineQuery);
        return { entries: (await deps.manage.events.timeline(name, limit)).map(viewTimelineEntry) };
      },
    },
    {
      method: 'GET',
      path: '/api/slots/:name/explain',
      access: 'read',
      tag: 'slots',
      summary: 'Explains the state of the slot as text',
      async handler(request) {
        const name = await existingSlot(deps, slotNameOf(request));
        const board = deps.board.current();
        const problems = board.slots.get(name)?.problems ?? board.refused.get(name) ?? [];
        const text = board.slots.get(name)?.explain(deps.now()) ?? 'The controller has not seen a valid document of this slot yet';
        return { name, text, problems: problems.map((problem) => formatProblem(problem)) };
      },
    },
  ];
}

async function existingSlot(deps: ManageDeps, name: SlotName): Promise<SlotName> {
  const board = deps.board.current();
  if (board.slots.has(name) || board.refused.has(name)) return name;
  if ((await deps.manage.editor.read(name)) !== undefined) return name;
  throw await noSuchSlot(deps.manage.editor, name);
}

async function* textOf(lines: AsyncIterable<{ readonly text: string }>): AsyncGenerator<string> {
  for await (const { text } of lines) yield `${text}\n`;
}
