/** Runs ffmpeg, which reads and writes formats besides WAV and PCM. */
import { spawn, type ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { SpeechFormat } from './decide/parse-speech.ts';

/**
 * Only containers of audio and video: others, such as playlists, would let a file of a user name further files to read.
 * https://ffmpeg.org/ffmpeg-formats.html
 */
const CONTAINERS = [
  'aac',
  'ac3',
  'aiff',
  'amr',
  'amrnb',
  'amrwb',
  'asf',
  'au',
  'caf',
  'flac',
  'flv',
  'loas',
  'matroska,webm',
  'mov,mp4,m4a,3gp,3g2,mj2',
  'mp3',
  'mpeg',
  'mpegts',
  'ogg',
  'w64',
  'wav',
  'wv',
].join(',');
const QUIET = ['-nostdin', '-hide_banner', '-loglevel', 'error'];
export const READ_RATE = 16_000;

const ENCODERS: Readonly<Record<Exclude<SpeechFormat, 'wav' | 'pcm'>, readonly string[]>> = {
  mp3: ['-c:a', 'libmp3lame', '-q:a', '4', '-write_xing', '0', '-f', 'mp3'],
  opus: ['-c:a', 'libopus', '-b:a', '48k', '-page_duration', '20000', '-f', 'ogg'],
  aac: ['-c:a', 'aac', '-b:a', '96k', '-f', 'adts'],
  flac: ['-c:a', 'flac', '-f', 'flac'],
};

export interface Conversion {
  readonly output: Readable;
  /** Resolves to whether the program ended without an error. */
  readonly ended: Promise<boolean>;
  stop(): void;
}

/** Whether the program can be started. */
export async function hasFfmpeg(program: string): Promise<boolean> {
  if (program === 'none') return false;
  const child = spawn(program, ['-version'], { stdio: 'ignore', env: environment() });
  return endOf(child);
}

/** Turns any sound in a file into one channel of 32-bit numbers at 16 kHz. */
export function decodeWithFfmpeg(program: string, file: string): Conversion {
  const limits = ['-protocol_whitelist', 'file', '-format_whitelist', CONTAINERS, '-threads', '1'];
  const output = ['-map', '0:a:0', '-vn', '-sn', '-dn', '-ac', '1', '-ar', String(READ_RATE), '-f', 'f32le', '-threads', '1', 'pipe:1'];
  const child = spawn(program, [...QUIET, ...limits, '-i', `file:${file}`, ...output], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: environment(),
  });
  return { output: child.stdout, ended: endOf(child), stop: () => child.kill('SIGKILL') };
}

/** Turns 16-bit samples into a compressed format. */
export function encodeWithFfmpeg(
  program: string,
  format: Exclude<SpeechFormat, 'wav' | 'pcm'>,
  rate: number,
): Conversion & { readonly input: Writable } {
  const input = ['-probesize', '32', '-analyzeduration', '0', '-f', 's16le', '-ar', String(rate), '-ac', '1', '-i', 'pipe:0'];
  const args = [...QUIET.slice(1), ...input, ...ENCODERS[format], '-flush_packets', '1', '-threads', '1', 'pipe:1'];
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'], env: environment() });
  // The program may end early; `ended` says so.
  child.stdin.on('error', () => undefined);
  return { input: child.stdin, output: child.stdout, ended: endOf(child), stop: () => child.kill('SIGKILL') };
}

async function endOf(child: ChildProcess): Promise<boolean> {
  return new Promise((resolve) => {
    child.on('error', () => resolve(false));
    child.on('close', (code) => resolve(code === 0));
  });
}

/** Nothing but where programs and libraries are. */
function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'] ?? '', LD_LIBRARY_PATH: process.env['LD_LIBRARY_PATH'] };
}
