/** A store of voices in a directory of its own, with the files that the service uses. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createVoiceFiles } from '../../src/files/voice-files.ts';

export async function openVoices(limit: number) {
  const dir = await mkdtemp(path.join(tmpdir(), 'svc-voices-'));
  const wallNow = (): number => Date.parse('2026-01-02T03:04:05Z');
  const open = () => createVoiceFiles({ directory: path.join(dir, 'voices'), limit, wallNow, onProblem: () => undefined });
  return { dir, open, remove: async () => rm(dir, { recursive: true }) };
}
