/**
 * How llama-server gives away the prompts that it has computed, and takes them back: `POST /slots/ID?action=save` and
 * `restore`. Seen with b11669 on 2026-11-26: files of another context, cache type or length are refused with 400, files
 * of other weights in the same shape are not. A busy server slot answers once it is idle.
 */
import { z } from 'zod';
import { parseJson } from '../../platform/decide/parse-json.ts';
import type { ProbeResponse, PromptCache } from '../provider.ts';
import { ggufModel } from './decide/gguf-model.ts';
import { roleOf } from './decide/model-role.ts';

const Props = z.object({ build_info: z.string().min(1).max(200), total_slots: z.int().min(1).max(1000) });
const Moved = z.object({ n_saved: z.int().optional(), n_written: z.int().optional(), n_restored: z.int().optional() });

const ASK_MS = 3000;

const VARIABLE = 'LLAMA_ARG_SLOT_SAVE_PATH';
/** With these, the server has a place of its own, or keeps nothing. */
const FLAGS = /^--(?:slot-save-path|no-cache-prompt)\b/;

export const promptCache: PromptCache = {
  variable: VARIABLE,
  appliesTo: (name, spec, model) =>
    roleOf(name, spec, ggufModel(model)).start === 'generate' &&
    // Another adapter computes another cache, and a server takes what it restores for that of the model alone.
    spec.model.adapters.length === 0 &&
    !(VARIABLE in spec.env) &&
    !spec.model.args.some((each) => FLAGS.test(each)),
  async identify(endpoint, io, signal) {
    const answer = await io.request(endpoint, { method: 'GET', path: '/props', timeoutMs: ASK_MS, signal });
    if (answer.status === 0) return { problem: problemOf(answer) };
    const { data } = Props.safeParse(answer.status === 200 ? parseJson(answer.body) : undefined);
    return data && { build: data.build_info, places: data.total_slots };
  },
  async move(endpoint, io, { direction, place, file, timeoutMs }, signal) {
    const path = `/slots/${place}?action=${direction}`;
    const answer = await io.request(endpoint, { method: 'POST', path, body: JSON.stringify({ filename: file }), timeoutMs, signal });
    const { data } = Moved.safeParse(answer.status === 200 ? parseJson(answer.body) : undefined);
    // A server that cannot write its file says so only here.
    if (data?.n_written === 0) return { ok: false, problem: 'the server has written nothing: its disk may be full' };
    const tokens = direction === 'save' ? data?.n_saved : data?.n_restored;
    return tokens === undefined ? { ok: false, problem: problemOf(answer) } : { ok: true, tokens };
  },
};

const problemOf = ({ status, body, error }: ProbeResponse): string =>
  status === 0 ? `the server does not answer: ${error ?? 'no answer'}` : `the server answers ${status}: ${body.slice(0, 200)}`;
