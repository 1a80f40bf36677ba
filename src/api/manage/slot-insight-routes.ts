/** Logs, timeline and explanation of one slot. */
import { Readable } from 'node:stream';
import { z } from 'zod';
import { mayReadLogs } from '../../auth/decide/decide-access.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import { json, text } from '../server/answer.ts';
import { defineRoute, type DocumentedRoute } from '../server/define-route.ts';
import { Explanation, Timeline, WorkloadEntry } from '../../schema/status/answers.ts';
import { labelsOf } from './decide/find-caller.ts';
import { answerOf, viewMemory, viewTimelineEntry } from './decide/slot-view.ts';
import { noSuchSlot, SlotParams } from './edit-outcome.ts';
import type { ManageDeps } from './manage-deps.ts';

const LogsQuery = z.strictObject({
  follow: z.enum(['0', '1', 'true', 'false']).default('0').describe('1: stay connected and send new lines as they appear'),
  tail: z.coerce.number().int().min(0).max(100_000).default(200).describe('Number of lines to start with, from the end'),
});
const TimelineQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(10_000).default(100).describe('Number of newest entries'),
});

const WORKLOAD_HEADER = { 'x-svc-workload': 'If there is no workload: "ended" before the last lines of the one that failed, else "none"' };

export function createSlotInsightRoutes(deps: ManageDeps): readonly DocumentedRoute[] {
  return [logsRoute(deps), timelineRoute(deps), explainRoute(deps)];
}

function logsRoute(deps: ManageDeps): DocumentedRoute {
  return defineRoute('GET', '/api/slots/:name/logs', 'all', {
    tag: 'slots',
    summary: 'Output of the slot’s workload as text/plain; if there is none, the last lines of the one that failed',
    input: z.object({ params: SlotParams, query: LogsQuery }),
    answers: { 200: text('One line of output per line', 'text/plain; charset=utf-8', WORKLOAD_HEADER) },
    errors: ['slot.not_found', 'server.starting'],
    async handler({ params, query }, { onClose }) {
      const name = await existingSlot(deps, params.name);
      const options = { tail: query.tail, follow: query.follow === '1' || query.follow === 'true' };
      const gone = new AbortController();
      onClose(() => gone.abort());
      const lines = await deps.manage.logs(name, options, AbortSignal.any([gone.signal, deps.stopping]));
      const headers = { 'x-accel-buffering': 'no' };
      if (lines !== undefined) return { status: 200, body: Readable.from(textOf(lines), { objectMode: false }), headers };
      const ended = query.tail === 0 ? [] : (deps.board.current().slots.get(name)?.lastLog ?? []).slice(-query.tail);
      const body = ended.map((line) => `${line}\n`).join('');
      return { status: 200, body, headers: { ...headers, 'x-svc-workload': ended.length === 0 ? 'none' : 'ended' } };
    },
  });
}

function timelineRoute(deps: ManageDeps): DocumentedRoute {
  return defineRoute('GET', '/api/slots/:name/timeline', 'read', {
    tag: 'slots',
    summary: 'Timeline of the slot, oldest first',
    input: z.object({ params: SlotParams, query: TimelineQuery }),
    answers: { 200: json('The newest entries, oldest first', Timeline) },
    errors: ['slot.not_found', 'server.starting'],
    async handler({ params, query }) {
      const entries = await deps.manage.events.timeline(params.name, query.limit);
      // The timeline of a deleted slot can be read for as long as it is kept.
      if (entries.length === 0) await existingSlot(deps, params.name);
      return { status: 200, body: { entries: entries.map(viewTimelineEntry) } };
    },
  });
}

function explainRoute(deps: ManageDeps): DocumentedRoute {
  return defineRoute('GET', '/api/slots/:name/explain', 'read', {
    tag: 'slots',
    summary: 'Explains the state of the slot as text',
    input: z.object({ params: SlotParams }),
    answers: { 200: json('The findings behind the state of the slot', Explanation) },
    errors: ['slot.not_found', 'server.starting'],
    async handler({ params }, { caller }) {
      const name = await existingSlot(deps, params.name);
      const board = deps.board.current();
      const problems = board.slots.get(name)?.problems ?? board.refused.get(name) ?? [];
      const readsLogs = mayReadLogs(caller);
      // Who may see the usage of callers may read logs as well.
      const labels = labelsOf(deps.tokens.list());
      const reader = { readsLogs, nameOf: (key: string) => (readsLogs ? (labels.get(key) ?? key) : undefined) };
      const text = board.slots.get(name)?.explain(deps.now(), reader) ?? 'The controller has not seen a valid document of this slot yet';
      const memory = viewMemory(board.slots.get(name)?.memory);
      const workloads = deps.manage.workloads(name).map((workload) => answerOf(WorkloadEntry, workload));
      return { status: 200, body: { name, text, problems: problems.map((problem) => formatProblem(problem)), workloads, memory } };
    },
  });
}

async function existingSlot(deps: ManageDeps, name: SlotName): Promise<SlotName> {
  const board = deps.board.current();
  if (board.slots.has(name) || board.refused.has(name)) return name;
  if ((await deps.manage.editor.read(name)) !== undefined) return name;
  throw await noSuchSlot(deps, name);
}

async function* textOf(lines: AsyncIterable<{ readonly text: string }>): AsyncGenerator<string> {
  for await (const { text } of lines) yield `${text}\n`;
}
