/** Health probes: verdicts on their HTTP status, and the recording that transcription is asked for. Pure. */
import { z } from 'zod';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { wavHeadOf } from '../../platform/decide/wav-head.ts';
import type { Health, ProbeResponse } from '../provider.ts';
import type { SlotSpec } from '../../schema/slot/slot-spec.ts';

const ErrorBody = z.object({ error: z.union([z.string(), z.object({ message: z.string() }).transform(({ message }) => message)]) });
const MAX_QUOTED_CHARACTERS = 200;
export const PASSING: Health = { kind: 'passing' };

export const errorIn = (body: string): string | undefined => ErrorBody.safeParse(parseJson(body)).data?.error;
export const quoteError = (body: string): string => JSON.stringify((errorIn(body) ?? body).slice(0, MAX_QUOTED_CHARACTERS));
const detail = (body: string): string => (body === '' ? '' : `: ${quoteError(body)}`);

/** The first, cheapest request of a probe; undefined: status 200. */
export function judgeAlive(response: ProbeResponse): Health | undefined {
  const { status, error = 'no connection' } = response;
  return status === 0 ? { kind: 'silent', message: `The server does not respond: ${error}` } : judgeStatus(response);
}

/** Judges a request that the model computes. Undefined: status 200. */
export function judgeStatus({ status, body, error = 'no response' }: ProbeResponse): Health | undefined {
  if (status === 200) return undefined;
  if (status === 0) return { kind: 'loading', message: `The server is running, but the model has not answered a health probe: ${error}` };
  if (status === 503) return { kind: 'loading', message: `The server is still loading${detail(body)}` };
  return { kind: 'failing', message: `A health probe failed with HTTP status ${status}${detail(body)}` };
}

/** An argument for the names of the model. Aliases with a comma would be split, and are left out. */
export const serverAliases = ({ model }: Pick<SlotSpec, 'model'>): string =>
  [model.default, ...model.aliases.filter((alias) => !alias.includes(','))].join(',');

const RATE = 16_000;
const TONE_HZ = 440;
const LOUDNESS = 8000;
const BOUNDARY = '----svc-probe';

export const PROBE_FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

/** A second of a tone as a WAV file in a form. Deterministic. */
export function probeForm(model: string): Uint8Array {
  const field = (disposition: string): string => `--${BOUNDARY}\r\nContent-Disposition: form-data; ${disposition}\r\n`;
  return Buffer.concat([
    Buffer.from(`${field('name="model"')}\r\n${model}\r\n${field('name="response_format"')}\r\njson\r\n`),
    Buffer.from(`${field('name="file"; filename="probe.wav"')}content-type: audio/wav\r\n\r\n`),
    encodeTone(),
    Buffer.from(`\r\n--${BOUNDARY}--\r\n`),
  ]);
}

function encodeTone(): Uint8Array {
  const samples = Buffer.alloc(RATE * 2);
  for (let at = 0; at < RATE; at += 1) samples.writeInt16LE(Math.round(LOUDNESS * Math.sin((2 * Math.PI * TONE_HZ * at) / RATE)), at * 2);
  return Buffer.concat([wavHeadOf(RATE, samples.length), samples]);
}
