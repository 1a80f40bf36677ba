/** Branded identifiers. A value of these types has passed its zod schema; there is no other way to create one. */
import { z } from 'zod';
import {
  MODEL_ID_LENGTH,
  MODEL_ID_PATTERN,
  MODEL_ID_RULE,
  MODEL_ID_TOO_LONG,
  SLOT_NAME_LENGTH,
  SLOT_NAME_PATTERN,
  SLOT_NAME_RULE,
} from './name-rules.ts';

export const SlotName = z
  .string()
  .max(SLOT_NAME_LENGTH, SLOT_NAME_RULE)
  .regex(new RegExp(SLOT_NAME_PATTERN), SLOT_NAME_RULE)
  .brand('SlotName');
export type SlotName = z.output<typeof SlotName>;

export const ModelId = z
  .string()
  .max(MODEL_ID_LENGTH, MODEL_ID_TOO_LONG)
  .regex(new RegExp(MODEL_ID_PATTERN), MODEL_ID_RULE)
  .brand('ModelId');
export type ModelId = z.output<typeof ModelId>;

/** Identifies a workload within its runtime: a container id, a process id with its start time, or the uid of a Deployment. Opaque outside the runtime. */
export const WorkloadId = z.string().min(1).brand('WorkloadId');
export type WorkloadId = z.output<typeof WorkloadId>;

/** A hash (twelve hexadecimal digits) of everything in a workload that users or this project decide. */
export const Revision = z
  .string()
  .regex(/^[0-9a-f]{12}$/)
  .brand('Revision');
export type Revision = z.output<typeof Revision>;
