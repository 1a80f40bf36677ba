/** A second of a tone as a WAV file in a form: the readiness check of transcription. Deterministic. Pure. */
import { wavHeadOf } from '../../../platform/decide/wav-head.ts';

const RATE = 16_000;
const TONE_HZ = 440;
const LOUDNESS = 8000;
const BOUNDARY = '----svc-probe';

export const PROBE_FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

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
