/** Branded identifiers. A value of these types has passed its zod schema; there is no other way to create one. */
import { z } from 'zod';
import {
  ENGINE_NAME_PATTERN,
  ENGINE_NAME_RULE,
  MODEL_ID_LENGTH,
  MODEL_ID_PATTERN,
  MODEL_ID_RULE,
  MODEL_ID_TOO_LONG,
  PROFILE_NAME_RULE,
  SLOT_NAME_LENGTH,
  SLOT_NAME_PATTERN,
  SLOT_NAME_RULE,
} from './name-rules.ts';

const named = (pattern: string, rule: string, most: number, tooLong = rule) =>
  z.string().max(most, tooLong).regex(new RegExp(pattern), rule);

export const SlotName = named(SLOT_NAME_PATTERN, SLOT_NAME_RULE, SLOT_NAME_LENGTH).brand('SlotName');
export type SlotName = z.output<typeof SlotName>;

/** A stored set of slots. */
export const ProfileName = named(SLOT_NAME_PATTERN, PROFILE_NAME_RULE, SLOT_NAME_LENGTH).brand('ProfileName');
export type ProfileName = z.output<typeof ProfileName>;

/** A built-in provider, or a declared engine. */
export const ProviderName = z.string().max(63, ENGINE_NAME_RULE).regex(new RegExp(ENGINE_NAME_PATTERN), ENGINE_NAME_RULE);

export const ModelId = named(MODEL_ID_PATTERN, MODEL_ID_RULE, MODEL_ID_LENGTH, MODEL_ID_TOO_LONG).brand('ModelId');
export type ModelId = z.output<typeof ModelId>;

/** Identifies a workload within its runtime: container id, process id with start time, Deployment uid. Opaque. */
export const WorkloadId = z.string().min(1).brand('WorkloadId');
export type WorkloadId = z.output<typeof WorkloadId>;

/** A hash (twelve hexadecimal digits) of everything in a workload that users or this project decide. */
export const Revision = z
  .string()
  .regex(/^[0-9a-f]{12}$/)
  .brand('Revision');
export type Revision = z.output<typeof Revision>;

export const VOICE_NAME_RULE =
  'A voice name consists of letters, digits, "-" and "_", starts with a letter or a digit and has at most 64 characters';

/** Name of a stored voice: one path segment, never `.` or `..`, case-insensitive. */
export const VoiceName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, VOICE_NAME_RULE)
  .brand('VoiceName');
export type VoiceName = z.output<typeof VoiceName>;
