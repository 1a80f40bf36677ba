/** Opens the stored voices: where the routes change them, and where requests for speech find them. */
import path from 'node:path';
import type { AuditTrail } from '../api/manage/audit-trail.ts';
import type { V1Deps } from '../api/v1/v1-routes.ts';
import { createVoiceFiles } from '../files/voice-files.ts';
import { imitatesVoices } from '../gateway/translate/decide/plan-voice.ts';
import type { VoiceStore } from '../schema/slot/voice-store.ts';
import type { ServiceOptions, World } from './world.ts';

/** Undefined in a cluster: replicas share no directory, so each would know other voices. */
export function openVoices(
  { settings, log }: Pick<ServiceOptions, 'settings'> & { readonly log: Pick<ServiceOptions['log'], 'warn'> },
  { runtime }: { readonly runtime: { readonly traits: Pick<World['runtime']['traits'], 'network'> } },
  wallNow: () => number,
): VoiceStore | undefined {
  if (runtime.traits.network === 'pods') return undefined;
  const { SVC_STATE_DIR: stateDir, SVC_VOICE_LIMIT: limit } = settings;
  return createVoiceFiles({ directory: path.join(stateDir, 'voices'), limit, wallNow, onProblem: (message) => log.warn({}, message) });
}

export function voicesForRoutes(
  voices: VoiceStore | undefined,
  { providers }: Pick<ServiceOptions, 'providers'>,
  audit: AuditTrail,
): Pick<V1Deps, 'voices' | 'imitates'> {
  return { voices: voices && audit.voices(voices), imitates: (slot) => imitatesVoices(providers, slot) };
}
