/** A recording of one second with a tone in it, as a WAV file in a form: what a server is asked to transcribe before it gets requests. The same each time. Pure. */

const RATE = 16_000;
const TONE_HZ = 440;
const LOUDNESS = 8000;
const HEADER_BYTES = 44;
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

/** 16-bit samples of one channel. */
function encodeTone(): Uint8Array {
  const wav = Buffer.alloc(HEADER_BYTES + RATE * 2);
  wav.write('RIFF', 0, 'latin1');
  wav.writeUInt32LE(wav.length - 8, 4);
  wav.write('WAVEfmt ', 8, 'latin1');
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(RATE, 24);
  wav.writeUInt32LE(RATE * 2, 28);
  wav.writeUInt16LE(2, 32);
  wav.writeUInt16LE(16, 34);
  wav.write('data', 36, 'latin1');
  wav.writeUInt32LE(RATE * 2, 40);
  for (let at = 0; at < RATE; at += 1)
    wav.writeInt16LE(Math.round(LOUDNESS * Math.sin((2 * Math.PI * TONE_HZ * at) / RATE)), HEADER_BYTES + at * 2);
  return wav;
}
